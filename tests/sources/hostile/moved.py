"""Redirects whatever comes to one address to another, as servers do that want a slash at the end."""

from web import Handler, serve, text


class Moved(Handler):
    def do_POST(self) -> None:  # noqa: N802
        if self.path == "/mcp":
            self.rfile.read(int(self.headers["content-length"]))
            self.reply(b"", {"location": "/mcp/"}, status=307)
        else:
            super().do_POST()


serve(lambda handler, message: handler.result(message, text("done")), handler=Moved)
