"""The operations of the service as routes: an address, a method and a status for each. All else is in their table."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response

from journeyman.app.desk import Desk
from journeyman.app.operations import (
    approvals,
    experiments,
    gaps,
    memory,
    playbooks,
    runs,
    service,
    tasks,
)
from journeyman.app.operations.table import Input, Operation
from journeyman.doors.http.common import DeskDep, JsonRoute
from journeyman.doors.http.errors import answers

CONFLICTS = {
    "approvals.approve",
    "approvals.deny",
    "attachments.add",
    "playbooks.rollback",
    "playbooks.settle",
    "runs.cancel",
    "runs.rate",
    "runs.resolve",
    "runs.resume",
    "sessions.delete",
}
"""What may clash with how things stand."""

ROUTES: Mapping[str, tuple[tuple[str, str, Operation[..., Any]], ...]] = {
    "service": (
        ("GET", "/me", service.me),
        ("GET", "/configuration", service.configuration),
    ),
    "sessions": (
        ("GET", "/sessions", runs.list_sessions),
        ("GET", "/sessions/{session_id}", runs.show_session),
        ("PATCH", "/sessions/{session_id}", runs.rename_session),
        ("DELETE", "/sessions/{session_id}", runs.delete_session),
    ),
    "runs": (
        ("GET", "/runs", runs.list_runs),
        ("GET", "/runs/{run_id}", runs.show_run),
        ("POST", "/runs/{run_id}/cancel", runs.cancel_run),
        ("POST", "/runs/{run_id}/resume", runs.resume_run),
        ("POST", "/runs/{run_id}/calls/{call_id}/resolve", runs.resolve_call),
        ("GET", "/runs/{run_id}/labels", runs.run_labels),
        ("POST", "/runs/{run_id}/rating", runs.rate_run),
    ),
    "approvals": (
        ("GET", "/approvals", approvals.list_approvals),
        ("GET", "/approvals/{approval_id}", approvals.show_approval),
        ("POST", "/approvals/{approval_id}/approve", approvals.approve),
        ("POST", "/approvals/{approval_id}/deny", approvals.deny),
        ("GET", "/grants", approvals.list_grants),
        ("DELETE", "/grants/{grant_id}", approvals.revoke_grant),
        ("GET", "/audit", approvals.list_audit),
    ),
    "tools": (
        ("GET", "/tools", service.list_tools),
        ("GET", "/tools/{name}", service.show_tool),
        ("GET", "/health/tools", service.tool_health),
        ("GET", "/agents", service.list_agents),
    ),
    "tasks": (
        ("POST", "/tasks", tasks.create_task),
        ("GET", "/tasks", tasks.list_tasks),
        ("GET", "/tasks/{task_id}", tasks.show_task),
        ("PATCH", "/tasks/{task_id}", tasks.update_task),
        ("DELETE", "/tasks/{task_id}", tasks.delete_task),
        ("GET", "/tasks/{task_id}/versions", tasks.list_task_versions),
        ("POST", "/tasks/{task_id}/versions/{number}", tasks.restore_task),
    ),
    "attachments": (
        ("GET", "/tasks/{task_id}/attachments", tasks.list_attachments),
        ("POST", "/tasks/{task_id}/attachments", tasks.add_attachment),
        ("GET", "/attachments/{attachment_id}", tasks.show_attachment),
        ("PATCH", "/attachments/{attachment_id}", tasks.update_attachment),
        ("DELETE", "/attachments/{attachment_id}", tasks.delete_attachment),
    ),
    "search": (("GET", "/search", tasks.search),),
    "memory": (
        ("POST", "/memory/documents", memory.add_document),
        ("GET", "/memory/documents", memory.list_documents),
        ("GET", "/memory/documents/{document_id}", memory.show_document),
        ("DELETE", "/memory/documents/{document_id}", memory.delete_document),
        ("GET", "/memory/search", memory.search_documents),
    ),
    "playbooks": (
        ("GET", "/playbooks", playbooks.list_playbooks),
        ("GET", "/playbooks/{domain}", playbooks.show_playbook),
        ("GET", "/playbooks/{domain}/history", playbooks.list_versions),
        ("GET", "/playbooks/{domain}/diff", playbooks.compare_versions),
        ("POST", "/playbooks/{domain}/rollback", playbooks.roll_back),
        ("PATCH", "/playbooks/{domain}/strategies/{strategy_id}", playbooks.change_strategy),
    ),
    "experiments": (
        ("GET", "/experiments", experiments.list_experiments),
        ("GET", "/experiments/{experiment_id}", experiments.show_experiment),
        ("PATCH", "/experiments/{name}", experiments.change_experiment),
    ),
    "gaps": (
        ("GET", "/gaps", gaps.list_gaps),
        ("GET", "/gaps/{key}", gaps.show_gap),
        ("GET", "/gaps/{key}/export", gaps.export_gap),
        ("POST", "/gaps/{key}/dismiss", gaps.dismiss_gap),
    ),
    "intents": (
        ("POST", "/intents", gaps.read_intent),
        ("GET", "/intents/types", gaps.list_types),
    ),
}
CREATED: Mapping[str, str] = {
    "tasks.create": "/api/v1/tasks/",
    "attachments.add": "/api/v1/attachments/",
    "memory.add": "/api/v1/memory/documents/",
}
"""What makes something, and where that is found then."""


def routers() -> list[APIRouter]:
    """A router for each kind of thing."""
    found = []
    for tag, routes in ROUTES.items():
        router = APIRouter(prefix="/api/v1", tags=[tag], route_class=JsonRoute)
        for method, path, operation in routes:
            _add(router, method, path, operation)
        found.append(router)
    return found


def _add(router: APIRouter, method: str, path: str, operation: Operation[..., Any]) -> None:
    nothing, place = operation.output is type(None), CREATED.get(operation.name)
    errors = [*([404] if "{" in path else []), *([409] if operation.name in CONFLICTS else [])]

    async def endpoint(desk: Desk, response: Response, **values: Any) -> Any:
        made = await operation(desk, **values)
        if place is not None:
            response.headers["Location"] = f"{place}{made.id}"
        return made

    keyword = Parameter.KEYWORD_ONLY
    parameters = [
        Parameter("desk", keyword, annotation=Annotated[Desk, Depends(_permitted(operation.permission))]),
        Parameter("response", keyword, annotation=Response),
        *(
            Parameter(item.name, keyword, default=item.default, annotation=_rendered(item, path))
            for item in operation.inputs
        ),
    ]
    endpoint.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # which FastAPI reads
    endpoint.__name__, endpoint.__doc__ = operation.work.__name__, operation.description
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        status_code=204 if nothing else 200 if place is None else 201,
        summary=operation.summary,
        response_model=None if nothing else operation.output,
        responses=answers(*errors),
    )


def _rendered(item: Input, path: str) -> Any:
    if item.is_body:
        return item.kind
    if f"{{{item.name}}}" in path:
        return Annotated[item.kind, Path(description=item.info.description, examples=item.info.examples)]
    info = item.info
    return Annotated[item.kind, Query(alias=info.alias, description=info.description, examples=info.examples)]


def _permitted(permission: str | None) -> Any:
    """The desk of a caller who holds a permission: whoever lacks it is told so before their body is read."""

    async def desk(desk: DeskDep) -> Desk:
        if permission is not None:
            desk.must_hold(permission)
        return desk

    return desk
