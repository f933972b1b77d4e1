"""A process that dies while a letter is being posted: `python -m tests.doors.http.web.dying sqlite:///FILE SESSION`."""

from __future__ import annotations

import asyncio
import sys

from journeyman.app.service import open_service
from journeyman.core.policy import Principal
from tests.doors.http.web.scenes import Clerk, Shop, clerk


async def main(store: str, session_id: str) -> None:
    shop = Shop(dies=True)
    library = shop.library()
    agent = clerk(library)
    async with open_service(store=store, library=library, agents=[agent], model=Clerk(shop)) as service:
        ada = Principal("local", permissions={"*"})
        handle = await service.app.start(agent, "Post a letter to Grace", principal=ada, session_id=session_id)
        await handle.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
