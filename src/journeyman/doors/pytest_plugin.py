"""The plugin of pytest: the fixture ``recorded_run`` plays a recording offline; ``--record`` makes one first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from journeyman.app import Agent, ToolLibrary
    from journeyman.core.policy import Policy
    from journeyman.replay.playing import Played


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("journeyman").addoption(
        "--record", action="store_true", help="Really run what recorded_run(…, agent=, task=) names, and record it."
    )


@pytest.fixture
def recorded_run(request: pytest.FixtureRequest) -> Callable[..., Played]:
    """Plays the recording in a file, beside the test or below pytest's root folder. Nothing has an effect.

    Tools and rules are those of ``library`` and ``policy``, or of the configuration file ``config``; without any, tools
    are what the recording says they were. With ``agent`` its tools are taken, and its instruction must be the recorded
    one. The test fails where the run goes otherwise than it was recorded, unless it says that it ``diverges``. With
    ``--record`` the agent is really run first, on ``task`` and with the further options of ``run``, and recorded.
    """
    folders = (request.path.parent, request.config.rootpath)
    records = request.config.getoption("--record")

    def found(name: str) -> Path:
        return next((folder / name for folder in folders if (folder / name).exists()), folders[0] / name)

    def played(
        name: str,
        *,
        library: ToolLibrary | None = None,
        policy: Policy | None = None,
        config: str | None = None,
        agent: Agent | None = None,
        task: str | None = None,
        diverges: bool = False,
        **options: Any,
    ) -> Played:
        from journeyman.app.replays import configured, really_recorded
        from journeyman.replay.playing import diverged, play
        from journeyman.replay.recording import Recording

        tools = agent.own_library if library is None and config is None and agent is not None else library
        file, today = found(name), configured(tools, policy, None if config is None else found(config))
        today.instruction = None if agent is None else agent.instruction

        async def whole() -> Played:
            if records and agent is not None and task is not None:
                made = await really_recorded(agent, task, library=library, policy=policy, **options)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(made.to_json(), encoding="utf-8")
            return await play(Recording.read(file.read_bytes()), today)

        with ThreadPoolExecutor(1) as thread:  # the test may have an event loop of its own
            run = thread.submit(asyncio.run, whole()).result()
        if not diverges and run.problems:
            pytest.fail(diverged(run.problems), pytrace=False)
        return run

    return played
