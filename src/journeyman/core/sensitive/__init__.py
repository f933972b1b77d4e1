"""What gives access: files that hold credentials, texts that are credentials, addresses that hand them out.

Tables and plain scanning; everything here is linear in the text it looks at.
"""
