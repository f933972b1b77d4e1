"""The options of ``journeyman approvals``, ``journeyman audit`` and ``journeyman db``."""

from __future__ import annotations

from typing import Annotated

import typer

from journeyman.doors.cli.options import DEFAULT_STORE, By, Json, Limit, Store, json_object

approvals = typer.Typer(help="What waits for a person's decision, and the decisions.", no_args_is_help=True)
audit = typer.Typer(help="Who decided, allowed or was refused what: a log that shows tampering.", no_args_is_help=True)
db = typer.Typer(help="The store's schema. Commands that work on runs bring it up to date.", no_args_is_help=True)

ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="The approval's id.", show_default=False)]


@approvals.command("list")
def approvals_list(
    run: Annotated[str | None, typer.Option(metavar="ID", help="Only those of one run.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Decided and expired ones, too.")] = False,
    limit: Limit = 50,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """What waits for a decision, oldest first."""
    from journeyman.doors.cli.deskwork import list_approvals

    list_approvals(url=store, run_id=run, everything=everything, limit=limit, as_json=as_json)


@approvals.command("show")
def approvals_show(approval_id: ApprovalId, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Exactly what would run, for whom, and what was decided."""
    from journeyman.doors.cli.deskwork import show_approval

    show_approval(approval_id, url=store, as_json=as_json)


@approvals.command("approve")
def approvals_approve(
    approval_id: ApprovalId,
    args: Annotated[
        str | None, typer.Option(metavar="JSON", help="Run it with these arguments, all of them, instead.")
    ] = None,
    for_session: Annotated[
        bool, typer.Option("--for-session", help="Also allow the tool for the rest of its session, without asking.")
    ] = False,
    by: By = None,
    library: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE[:NAME]",
            help="The run's tools, to check --args at once; else they are checked when the call runs.",
            show_default=False,
        ),
    ] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Allow exactly this call, once. Exit code 1 when it was decided before."""
    from journeyman.doors.cli.deskwork import approve

    arguments = None if args is None else json_object(args, option="--args")
    approve(approval_id, url=store, arguments=arguments, for_session=for_session, by=by, library=library)


@approvals.command("deny")
def approvals_deny(
    approval_id: ApprovalId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The model is told.", show_default=False)] = "",
    by: By = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Refuse the call; the run goes on without it. Exit code 1 when it was decided before."""
    from journeyman.doors.cli.deskwork import deny

    deny(approval_id, url=store, reason=reason, by=by)


@approvals.command("grants")
def approvals_grants(
    session: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of one session.")] = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Tools that people allowed for a whole session."""
    from journeyman.doors.cli.deskwork import list_grants

    list_grants(url=store, session=session, as_json=as_json)


@approvals.command("revoke")
def approvals_revoke(
    grant_id: Annotated[str, typer.Argument(metavar="GRANT", help="The grant's id.", show_default=False)],
    by: By = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Take a grant back: the tool is asked about again."""
    from journeyman.doors.cli.deskwork import revoke_grant

    raise typer.Exit(revoke_grant(grant_id, url=store, by=by))


@audit.command("list")
def audit_list(
    after: Annotated[int, typer.Option(min=0, metavar="ROW", help="Only rows after this one.")] = 0,
    limit: Limit = 100,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """The rows, oldest first."""
    from journeyman.doors.cli.upkeep import list_audit

    list_audit(url=store, after=after, limit=limit, as_json=as_json)


@audit.command("verify")
def audit_verify(store: Store = DEFAULT_STORE) -> None:
    """Check that no row was changed, cut or forged; else exit code 1 and the first that does not fit."""
    from journeyman.doors.cli.upkeep import verify_audit

    verify_audit(url=store)


@db.command("version")
def db_version(store: Store = DEFAULT_STORE) -> None:
    """Which version of the schema the store has."""
    from journeyman.doors.cli.upkeep import schema_version

    schema_version(url=store)


@db.command("upgrade")
def db_upgrade(store: Store = DEFAULT_STORE) -> None:
    """Make the store if it is not there, and bring its schema up to date."""
    from journeyman.doors.cli.upkeep import upgrade

    upgrade(url=store)


@db.command("downgrade")
def db_downgrade(
    version: Annotated[int, typer.Argument(min=0, metavar="VERSION", help="The version to go back to.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: Store = DEFAULT_STORE,
) -> None:
    """Go back to an older schema, and lose for good what only the newer one can hold."""
    from journeyman.doors.cli.upkeep import downgrade

    raise typer.Exit(downgrade(version, url=store, yes=yes))
