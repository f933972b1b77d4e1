"""The hand-written loop. Blocking tools go to the standard thread pool, as a person would do it."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from benchmarks.overhead.floor import Floor
from benchmarks.overhead.measure import Run, main
from benchmarks.overhead.scenarios import Workload
from benchmarks.overhead.toolbox import Function, schemas


@asynccontextmanager
async def prepare(base_url: str, functions: list[Function], workload: Workload) -> AsyncIterator[Run]:
    del workload  # there is no limit to lift
    tools = {
        function.__name__: function if inspect.iscoroutinefunction(function) else partial(asyncio.to_thread, function)
        for function in functions
    }
    floor = Floor(base_url, tools, schemas(functions))
    async with floor.session:
        yield floor.run


if __name__ == "__main__":
    main(prepare)
