"""What gives access: files that hold credentials, texts that are credentials, addresses that hand them out.

Lists, which are data in the ``.txt`` files, and plain scanning; everything here is linear in the text it looks at.
Every room may ask, because whatever logs, fetches or reads a file has to.
"""

FETCH_SECONDS = 15.0
"""How long a server may take to answer a tool."""
