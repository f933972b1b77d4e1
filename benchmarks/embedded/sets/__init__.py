"""Three small sets of tools of different kinds, with requests. Nothing here is ever run."""

from benchmarks.embedded.sets import devices, files, money
from journeyman import ToolSpecification

SETS: dict[str, tuple[ToolSpecification, ...]] = {
    name: tuple(made.specification for made in module.TOOLS)
    for name, module in (("devices", devices), ("money", money), ("files", files))
}
