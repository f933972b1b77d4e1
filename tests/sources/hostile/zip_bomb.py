"""Answers a call with a small body that unpacks to two hundred megabytes."""

import gzip
import io

from web import serve

packed = io.BytesIO()
with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as out:
    for _ in range(20):
        out.write(b" " * 10_000_000)

serve(lambda handler, _: handler.reply(packed.getvalue(), {"content-encoding": "gzip"}))
