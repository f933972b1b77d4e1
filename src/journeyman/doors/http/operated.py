"""The operations of the service as routes: an address, a method and a status for each. All else is in their table."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Path, Query, Response

from journeyman.app.desk import Desk
from journeyman.app.operations import approvals, experiments, gaps, memory, playbooks, replays, runs, service, tasks
from journeyman.app.operations.table import Input, Operation
from journeyman.doors.http.common import DeskDep, JsonRoute
from journeyman.doors.http.errors import answers

Row: TypeAlias = tuple[str, str, Operation[..., Any], *tuple[int, ...]]
"""A method, an address, what it does; 201 where it makes something, 409 where it may clash with how things stand."""

ROUTES: Mapping[str, tuple[Row, ...]] = {
    "service": (
        ("GET", "/me", service.me),
        ("GET", "/configuration", service.configuration),
    ),
    "sessions": (
        ("GET", "/sessions", runs.list_sessions),
        ("GET", "/sessions/{session_id}", runs.show_session),
        ("PATCH", "/sessions/{session_id}", runs.rename_session),
        ("DELETE", "/sessions/{session_id}", runs.delete_session, 409),
    ),
    "runs": (
        ("GET", "/runs", runs.list_runs),
        ("POST", "/runs/replay", replays.replay_runs, 404),
        ("GET", "/runs/{run_id}", runs.show_run),
        ("POST", "/runs/{run_id}/cancel", runs.cancel_run, 409),
        ("POST", "/runs/{run_id}/resume", runs.resume_run, 409),
        ("POST", "/runs/{run_id}/calls/{call_id}/resolve", runs.resolve_call, 409),
        ("POST", "/runs/{run_id}/fork", replays.fork_run),
        ("GET", "/runs/{run_id}/diff", replays.compare_runs),
        ("GET", "/runs/{run_id}/steps/{step}", replays.show_step),
        ("GET", "/runs/{run_id}/test", replays.make_test),
        ("GET", "/runs/{run_id}/labels", runs.run_labels),
        ("GET", "/runs/{run_id}/flow", runs.run_flow),
        ("POST", "/runs/{run_id}/rating", runs.rate_run, 409),
    ),
    "approvals": (
        ("GET", "/approvals", approvals.list_approvals),
        ("GET", "/approvals/{approval_id}", approvals.show_approval),
        ("POST", "/approvals/{approval_id}/approve", approvals.approve, 409),
        ("POST", "/approvals/{approval_id}/deny", approvals.deny, 409),
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
        ("POST", "/tasks", tasks.create_task, 201),
        ("GET", "/tasks", tasks.list_tasks),
        ("GET", "/tasks/{task_id}", tasks.show_task),
        ("PATCH", "/tasks/{task_id}", tasks.update_task),
        ("DELETE", "/tasks/{task_id}", tasks.delete_task),
        ("GET", "/tasks/{task_id}/versions", tasks.list_task_versions),
        ("POST", "/tasks/{task_id}/versions/{number}", tasks.restore_task),
    ),
    "attachments": (
        ("GET", "/tasks/{task_id}/attachments", tasks.list_attachments),
        ("POST", "/tasks/{task_id}/attachments", tasks.add_attachment, 201, 409),
        ("GET", "/attachments/{attachment_id}", tasks.show_attachment),
        ("PATCH", "/attachments/{attachment_id}", tasks.update_attachment),
        ("DELETE", "/attachments/{attachment_id}", tasks.delete_attachment),
    ),
    "search": (("GET", "/search", tasks.search),),
    "memory": (
        ("POST", "/memory/documents", memory.add_document, 201),
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
        ("POST", "/playbooks/{domain}/rollback", playbooks.roll_back, 409),
        ("PATCH", "/playbooks/{domain}/strategies/{strategy_id}", playbooks.change_strategy, 409),
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


def routers() -> list[APIRouter]:
    """A router for each kind of thing."""
    found = []
    for tag, routes in ROUTES.items():
        router = APIRouter(prefix="/api/v1", tags=[tag], route_class=JsonRoute)
        for row in routes:
            _add(router, *row)
        found.append(router)
    return found


def _add(router: APIRouter, method: str, path: str, operation: Operation[..., Any], *statuses: int) -> None:
    status = 204 if operation.output is type(None) else 201 if 201 in statuses else 200
    errors = [*([404] if "{" in path or 404 in statuses else []), *([409] if 409 in statuses else [])]

    async def endpoint(desk: Desk, response: Response, **values: Any) -> Any:
        made = await operation(desk, **values)
        if status == 201:  # found by its own id, also where it was made as a part of something else
            response.headers["Location"] = f"/api/v1{path.rpartition('}')[2]}/{made.id}"
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
        status_code=status,
        summary=operation.summary,
        response_model=None if status == 204 else operation.output,
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
