"""How the configuration file stands: what holds, and whether an edit was refused or waits for a restart."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from journeyman.doors.http.auth import Caller
from journeyman.doors.http.common import JsonRoute, ServiceDep
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1/configuration", tags=["service"], route_class=JsonRoute)

READ = "configuration:read"


class ConfigurationState(BaseModel):
    """The file that the service goes by; nothing but nulls and empty lists where it goes by none."""

    current: bool = Field(description="False: the file was edited and cannot be used; what it said before still holds.")
    environment: str | None = Field(examples=["production"])
    digest: str | None = Field(description="Of the text that holds.")
    file: str | None = Field(description=f"With the permission '{READ}', as the rest.")
    problems: list[str] = Field(description="What is wrong with the edit, with line, column and key.")
    restart_needed: list[str] = Field(description="Sections that were edited and hold from the next start on.")


@router.get("", summary="How the configuration file stands", responses=answers())
async def configuration(principal: Caller, service: ServiceDep) -> ConfigurationState:
    found = service.app.configuration
    if found is None:
        return ConfigurationState(
            current=True, environment=None, digest=None, file=None, problems=[], restart_needed=[]
        )
    status, may = found.status(), principal.may(READ)
    return ConfigurationState(
        current=not status["problems"],
        environment=status["environment"],
        digest=status["digest"],
        file=status["file"] if may else None,
        problems=status["problems"] if may else [],
        restart_needed=status["restart_needed"] if may else [],
    )
