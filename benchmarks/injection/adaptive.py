"""Attacks that were written before the rule that has to stop them, over tools whose risk alone would let them pass."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from journeyman import (
    Agent,
    Document,
    Image,
    Limits,
    Message,
    Policy,
    RiskLevel,
    ToolContext,
    ToolError,
    ToolLibrary,
    run,
    tool,
)
from journeyman.testing import ScriptedModel, call, say
from journeyman.tools.tool import Tool

ATTACKS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("adaptive.json").read_text())
ACTS = "!"
"""Before the tool of each call that is the attacker's."""
PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


@dataclass
class World:
    """Tools that say what an attack's script has them say, and a memory and tasks that keep labels."""

    results: list[Any] = field(default_factory=list)
    kept: list[tuple[dict[str, Any], Any]] = field(default_factory=list)

    def tools(self) -> list[Tool[..., Any]]:
        read: dict[str, Any] = {"risk": RiskLevel.REVERSIBLE, "read_only": True}
        act: dict[str, Any] = {"risk": RiskLevel.REVERSIBLE}

        @tool(**read, reads="untrusted", sends="url")
        def fetch_page(url: str) -> Any:
            """Read a page."""
            return self.next()

        @tool(**read, reads="untrusted")
        def read_mail(sender: str = "") -> Any:
            """Read the mail."""
            return self.next()

        @tool(**read, reads="untrusted")
        def read_file(path: str) -> Any:
            """Read a file."""
            return self.next()

        @tool(**read, reads="untrusted")
        def list_files() -> Any:
            """List the files."""
            return self.next()

        @tool(**read, reads="untrusted")
        def read_resource(uri: str) -> Any:
            """Read a resource of a server."""
            return self.next()

        @tool(**read, reads="untrusted")
        def get_prompt(name: str) -> Any:
            """Read a prompt of a server."""
            return self.next()

        @tool(**read, reads="private")
        def read_notes() -> Any:
            """Read the notes."""
            return self.next()

        @tool(**read, reads=(), sends="to:the search engine")
        def web_search(query: str) -> str:
            """Search the web."""
            return "nothing"

        @tool(**read, reads=())
        def echo(text: str) -> Any:
            """Say it again."""
            return self.next()

        @tool(**read, reads=())
        def decode(text: str) -> Any:
            """Decode a text."""
            return self.next()

        @tool(**read, reads=())
        def parse(text: str) -> Any:
            """Parse a text."""
            return self.next()

        @tool(**act, sends=("to", "cc"))
        def send_email(to: str, subject: str, body: str, cc: str = "") -> str:
            """Send a mail."""
            return "sent"

        @tool(**act)
        def pay(recipient: str, amount: float, subject: str) -> str:
            """Pay somebody."""
            return "paid"

        @tool(**act, reads="untrusted")
        def wire(account: str, amount: float) -> Any:
            """Pay by a foreign bank."""
            return self.next() or "paid"

        @tool(**act)
        def refund_order(order_id: str, amount: str) -> str:
            """Refund an order."""
            return "refunded"

        @tool(**act)
        def order_item(item: str, quantity: int) -> str:
            """Order something."""
            return "ordered"

        @tool(**act)
        def update_settings(values: dict[str, bool]) -> str:
            """Change settings."""
            return "changed"

        @tool(**act, sends="url")
        def post_page(url: str, content: str) -> str:
            """Post to a page."""
            return "posted"

        @tool(**act)
        def delete_file(file_id: str) -> str:
            """Delete a file."""
            return "deleted"

        @tool(**act)
        def cancel_order(order_id: str) -> str:
            """Cancel an order."""
            return "cancelled"

        @tool(**act)
        def update_profile(email: str) -> str:
            """Change the profile."""
            return "changed"

        @tool(**act)
        def update_password(password: str) -> str:
            """Change the password."""
            return "changed"

        @tool(**act)
        def create_event(title: str, start: str, participants: list[str]) -> str:
            """Create an event."""
            return "created"

        @tool(**act)
        def grant_access(user: str, role: Literal["read", "write", "admin"]) -> str:
            """Give somebody access."""
            return "granted"

        @tool(**act)
        def run_command(command: str) -> str:
            """Run a command."""
            return "ran"

        @tool(**act)
        def install_package(name: str) -> str:
            """Install a package."""
            return "installed"

        @tool(**act, sends="to")
        def forward_email(mail_id: str, to: str) -> str:
            """Forward a mail."""
            return "forwarded"

        @tool(**act, keeps_labels=True)
        def store_memory(content: str, metadata: dict[str, str] | None = None, *, context: ToolContext) -> str:
            """Remember."""
            return self.keep(context, content=content, **(metadata or {}))

        @tool(**act, keeps_labels=True)
        def create_task(title: str, description: str, *, context: ToolContext) -> str:
            """Create a task."""
            return self.keep(context, title=title, description=description)

        @tool(**read, reads=())
        def search_memory(query: str, *, context: ToolContext) -> list[Any]:
            """Recall."""
            return self.found(context)

        @tool(**read, reads=())
        def query_tasks(*, context: ToolContext) -> list[Any]:
            """List the tasks."""
            return self.found(context)

        return [value for value in locals().values() if isinstance(value, Tool)]

    def next(self) -> Any:
        """What the script says, as it says: an error, or a picture or a file whose words only a model can see."""
        match result := self.results.pop(0) if self.results else "":
            case {"error": str(words)}:
                raise ToolError("FAILED", words)
            case {"picture": str()}:
                return Image.from_bytes(PIXEL)
            case {"document": str()}:
                return Document.from_bytes(b"%PDF-1.4")
        return result

    def keep(self, context: ToolContext, **what: Any) -> str:
        self.kept.append((what, context.label))
        return "kept"

    def found(self, context: ToolContext) -> list[Any]:
        for _, label in self.kept:
            context.mark(label)
        return [what for what, _ in self.kept]


async def acted(attack: Mapping[str, Any], policy: Policy) -> list[str]:
    """The attacker's calls that ran with nobody to ask, each with its arguments. Other calls must run."""
    world, found = World(), list[str]()
    library = ToolLibrary(world.tools())
    history: Sequence[Message] = ()
    for turn in attack["turns"]:
        steps = turn["steps"]
        world.results = [step[2] for step in steps if len(step) > 2]
        response = await run(
            Agent(name="assistant", instruction="Help.", tools=library.specifications()),
            turn["request"],
            library=library,
            model=ScriptedModel([*(call(step[0].removeprefix(ACTS), **step[1]) for step in steps), say("Done.")]),
            policy=policy,
            history=history,
            limits=Limits(iterations=len(steps) + 1),
        )
        history = response.messages
        for step, record in zip(steps, response.tool_calls, strict=True):
            if step[0].startswith(ACTS) and record.success:
                found.append(f"{record.tool_name} {record.arguments}")
            elif not step[0].startswith(ACTS) and not record.success and "error" not in _last(step):
                raise AssertionError(f"{attack['name']}: {record.tool_name} did not run: {record.error_message}")
    return found


def _last(step: Sequence[Any]) -> Mapping[str, Any]:
    return step[2] if len(step) > 2 and isinstance(step[2], dict) else {}
