"""What may stand in a configuration file. Descriptions are shown by editors and in the reference."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, AliasChoices, Discriminator, Field, Tag, model_validator

from journeyman.core.model_settings import ModelSettings
from journeyman.core.policy import (
    BreakerRule,
    Policy,
    RateLimit,
    Reads,
    RiskLevel,
    Sends,
    check_permissions,
    is_pattern,
)
from journeyman.core.specification import Environment
from journeyman.core.storing import LONGEST_LEASE, SHORTEST_LEASE
from journeyman.settings.values import Duration, LateSecretText, RateText, Retention, SecretText, Section

VERSION = 1
_DEFAULTS = Policy()
_BREAKER = BreakerRule()


Permissions = Annotated[list[str], AfterValidator(lambda values: sorted(check_permissions(values)))]


class Limits(Section):
    """What runs and calls may take, unless whoever starts a run says otherwise."""

    iterations: int | None = Field(None, gt=0, description="questions to the model in one run; 10 unless given")
    history_messages: int | None = Field(None, gt=0, description="messages of a conversation that a model is sent; 100")
    seconds: Duration | None = Field(None, description="how long a run may take")
    tokens: int | None = Field(None, gt=0, description="of the model, in one run")
    calls: RateText | None = Field(None, description="all calls together")
    calls_per_principal: RateText | None = Field(None, description="all calls of one principal together")
    principals: dict[str, RateText] = Field(
        default_factory=dict, description="the same for single principals, by their ids"
    )


class Breaker(Section):
    """A tool that fails several times in a row rests for a while."""

    enabled: bool = True
    failures: int = Field(_BREAKER.failures, gt=0, description="failures in a row, after which a tool rests")
    rest: Duration = Field(_BREAKER.rest_seconds, description="how long it is not called then")
    probes: int = Field(_BREAKER.probes, gt=0, description="calls that try it out afterwards")


class Rules(Section):
    """The rules every call is held to."""

    default_risk: RiskLevel = Field(
        _DEFAULTS.default_risk, description="of a tool that declares none and whose name is not known"
    )
    confidence: float = Field(
        _DEFAULTS.approval_confidence,
        ge=0,
        le=1,
        description="below it a call that is reversible with delay needs approval",
    )
    wait: Duration = Field(
        _DEFAULTS.wait_seconds, description="how long a call may wait for its turn under a rate limit"
    )
    retry_backoff: Duration = Field(_DEFAULTS.retry_backoff_seconds, description="before a second attempt; doubles")
    breaker: Breaker = Breaker()
    max_argument_bytes: int = Field(_DEFAULTS.max_argument_bytes, gt=0)
    max_result_chars: int = Field(_DEFAULTS.max_result_chars, ge=200, description="what a model sees of one result")
    max_result_bytes: int = Field(_DEFAULTS.max_result_bytes, gt=0, description="larger results are errors")
    max_inline_bytes: int = Field(_DEFAULTS.max_inline_bytes, gt=0, description="larger results are kept apart")
    max_offered_tools: int = Field(_DEFAULTS.max_offered_tools or 20, ge=3, description="tools told to a model at once")
    capture_content: bool = Field(False, description="whether logs and spans may carry arguments and results")


class Grants(Section):
    """What one approval may allow for a whole session."""

    uses: int = Field(_DEFAULTS.grant_uses, gt=0)
    for_: Duration = Field(_DEFAULTS.grant_seconds, alias="for", description="how long")
    risk: Literal["none", "reversible", "reversible_with_delay", "irreversible"] = Field(
        "irreversible", description="up to which risk; none: every call is asked about"
    )


class Approvals(Section):
    """How people are asked."""

    expire_after: Duration = Field(
        _DEFAULTS.stored_approval_seconds, description="how long a question waits in the store"
    )
    expire_in_process: Duration = Field(
        _DEFAULTS.approval_seconds, description="how long it waits where the run lives in its caller's process"
    )
    four_eyes: bool = Field(False, description="whoever approves must be somebody else than the run's principal")
    grounding: Literal["report", "ask", "refuse"] = Field(
        "report",
        description="identifiers in a call that stand in nothing said before: report them, ask a person before a call "
        "that has effects, or refuse the call so that the model looks them up",
    )
    flow: Literal["off", "report", "ask", "refuse"] = Field(
        "ask",
        description="calls with effects that untrusted words may have caused, and private data that would leave: "
        "report them, ask a person, or refuse the call",
    )
    flow_spares: bool = Field(
        False,
        description="no question about an undeclared risk where the person has asked for the call and named all of it",
    )
    grants: Grants = Grants()


class Argument(Section):
    """How one argument of a tool is told to models."""

    rename: str | None = Field(None, pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="what models call it")
    description: str | None = Field(None, min_length=1, description="what models are told of it")
    hide: bool = Field(False, description="models do not know of it: it is left out")
    value: Any = Field(None, description="it always has this value, and models do not know of it")


class Result(Section):
    """What of a tool's results is kept."""

    select: list[Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$")]] = Field(
        default_factory=list, description="the fields that are kept: `owner.name`, `*` for any; lists are gone through"
    )
    items: int | None = Field(None, gt=0, description="of each list")
    chars: int | None = Field(None, gt=0, description="of each text")


class ToolOverride(Section):
    """What can be set of a tool, also for one environment. What is left out stays as the tool declares it."""

    enabled: bool | None = Field(None, description="false takes the tool away; a tool that is off in code stays off")
    category: str | None = Field(None, min_length=1)
    permissions: Permissions = Field(
        default_factory=list, description="needed besides those that the tool and its category need"
    )
    risk: RiskLevel | None = Field(
        None, description="of a tool that declares none; of one that does, it can only be raised"
    )
    read_only: bool | None = Field(None, description="that a tool which declares no risk only reads: nobody is asked")
    digest: str | None = Field(
        None, description="of the tool when `risk` or `read_only` was said; once it is another, they do not lower it"
    )
    rename: str | None = Field(None, min_length=1, max_length=128, description="what models and people call it")
    description: str | None = Field(None, min_length=1, description="what models are told of it")
    arguments: dict[str, Argument] = Field(default_factory=dict, description="by name, how they are told to models")
    result: Result | None = Field(None, description="what of its results is kept")
    reads: Reads | None = Field(
        None, description="whose words its results hold: untrusted, private, private:NAME; [] for our own"
    )
    sends: Sends | None = Field(
        None, description="parameters that name a recipient, or to:NAME; [] where nothing leaves"
    )
    timeout_seconds: float | None = Field(None, ge=1, le=300, allow_inf_nan=False)
    retries: int | None = Field(None, ge=0, le=10, description="only where repeating is safe")
    cache: Duration | None = Field(None, description="how long results are reused; for tools that only read")
    rate_limit: RateText | None = Field(None, validation_alias=AliasChoices("rate_limit", "rate_limits"))
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="values of arguments that the model leaves out"
    )


class Tool(ToolOverride):
    """One tool, by its name."""

    @property
    def told(self) -> dict[str, Any]:
        """What is told of it otherwise, as ``transformed`` takes it."""
        fields = {"rename", "description", "arguments", "result"}
        return self.model_dump(include=fields, exclude_unset=True)

    import_: str | None = Field(
        None,
        alias="import",
        min_length=1,
        description="where it is: module:function or file.py:function; not for tools of a toolkit or an MCP server",
    )
    environments: dict[Environment, ToolOverride] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("environments", "environment_overrides"),
        description="what differs in one environment",
    )

    def in_environment(self, environment: str) -> Tool:
        """The tool's settings with those of one environment over them."""
        over = self.environments.get(environment)  # type: ignore[call-overload]  # any text may be asked for
        return self if over is None else self.overridden(over)

    def overridden(self, over: ToolOverride) -> Tool:
        """These settings with others over them."""
        update = {name: getattr(over, name) for name in over.model_fields_set}
        if "permissions" in update:
            update["permissions"] = sorted({*self.permissions, *over.permissions})  # only ever more
        if "arguments" in update:
            update["arguments"] = {**self.arguments, **over.arguments}
        return self.model_copy(update=update)


class Category(Section):
    """Tools that are switched, permitted and configured together."""

    enabled: bool = True
    permissions: Permissions = Field(default_factory=list, description="needed for every tool of it")
    rate_limit: RateText | None = Field(None, description="for all its tools together")
    reads: Reads | None = Field(None, description="whose words the results of its tools hold, unless one says it")
    sends: Sends | None = Field(None, description="where their arguments go: to:NAME, or [] for nowhere")
    global_config: dict[str, Any] = Field(
        default_factory=dict, description="what its tools find in `context.settings`; no secrets"
    )
    schema_: str | dict[str, Any] | None = Field(
        None, alias="schema", description="a JSON Schema, or module:Model, that global_config must fit"
    )


class Intent(Section):
    """A type of request, by its name; or what else is to be known of summarize, analyze, fetch and explain."""

    description: str = Field("", max_length=500, description="what such requests ask for, in a sentence")
    examples: list[Annotated[str, Field(min_length=1, max_length=500)]] = Field(
        default_factory=list, max_length=50, description="such requests, as people write them"
    )
    tools: list[str] = Field(default_factory=list, description="the tools that serve it; any, unless given")
    categories: list[str] = Field(default_factory=list, description="the categories whose tools serve it")


class OAuth(Section):
    """Who we are to a server that asks for an access token: a person, or a program with a secret of its own."""

    sign_in: bool = Field(False, description="a person signs in with a browser: `journeyman mcp login NAME`")
    client_id: SecretText | None = Field(None, description="what the server's authorization server knows us by")
    client_secret: SecretText | None = Field(None, description="proves it; only by `${NAME}` or `file:PATH`")
    issuer: str | None = Field(None, min_length=1, description="who gives the token, and alone sees the secret")
    scope: str | None = Field(None, description="what is asked for; what the server names unless given")

    @model_validator(mode="after")
    def _one_way(self) -> OAuth:
        given = [self.client_id, self.client_secret, self.issuer]
        if self.sign_in == any(given) or (not self.sign_in and not all(given)):
            raise ValueError("give 'client_id', 'client_secret' and 'issuer', or 'sign_in: true'")
        return self


class ToolSource(Section):
    """Somewhere tools come from. They are `NAME.tool`, in a category of its name."""

    enabled: bool = True
    timeout_seconds: float = Field(30.0, ge=1, le=300, allow_inf_nan=False, description="for one call")
    cache: Duration | None = Field(None, description="how long results of its tools that only read are reused")
    permissions: Permissions = Field(default_factory=list, description="needed for each of its tools")
    only: list[str] | None = Field(None, description="its tools that are taken, `*` for several; all unless given")
    category: str | None = Field(None, min_length=1, description="of its tools; the source's name unless given")


class McpServer(ToolSource):
    """A server of the Model Context Protocol. Its tools are `NAME.tool`, in a category of the server's name."""

    command: list[str] | None = Field(None, min_length=1, description="starts a server that speaks over stdin and out")
    url: SecretText | None = Field(None, description="where one listens")
    headers: dict[str, SecretText] = Field(default_factory=dict, description="sent with every request; with url")
    oauth: OAuth | None = Field(None, description="signs in before the first request; with url")
    env: dict[str, SecretText] = Field(default_factory=dict, description="the process's environment; with command")
    cwd: str | None = Field(None, description="the folder it is started in; with command")
    trust_annotations: bool = Field(False, description="whether what it says of its tools may lower their risk")
    start: Duration = Field(10.0, description="how long it may take to answer at first")
    resources: bool = Field(True, description="whether its resources can be read by tools")
    prompts: bool = Field(True, description="whether its prompts can be asked for by tools")
    allow: list[Literal["sampling", "roots"]] = Field(
        default_factory=list, description="what it may ask of a gateway's client, besides questions to the person"
    )
    protocol: Literal["2025-11-25", "2026-07-28"] | None = Field(
        None, description="the only version to speak; the newest that both know unless given"
    )

    @model_validator(mode="after")
    def _one_way(self) -> McpServer:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either 'command' or 'url'")
        if self.command is not None and (self.headers or self.oauth):
            raise ValueError("'headers' and 'oauth' go with 'url'; a command takes 'env'")
        if self.url is not None and (self.env or self.cwd):
            raise ValueError("'env' and 'cwd' go with 'command'; a server at a 'url' takes 'headers'")
        return self


class OpenApi(ToolSource):
    """An API, by its OpenAPI document (3.0 or 3.1). `only` takes the names of its operations, too."""

    document: SecretText = Field(min_length=1, description="a file, as seen from this one, or an address")
    base_url: SecretText = Field(min_length=1, description="where it is called, and nowhere else")
    auth: SecretText | dict[str, SecretText] | None = Field(
        None, description="a key, a token or user:password for its scheme, or one for each scheme by name; `${NAME}`"
    )
    headers: dict[str, SecretText] = Field(default_factory=dict, description="sent with every request")


class Runs(Section):
    """How runs are worked on."""

    concurrency: int | None = Field(None, gt=0, description="at once; 64, in each worker 16")
    principal_concurrency: int | None = Field(None, gt=0, description="of one principal at once, anywhere")
    lease: Annotated[Duration, Field(le=LONGEST_LEASE)] = Field(
        30.0, ge=SHORTEST_LEASE, description="after how long a silent process is replaced"
    )
    grace: Duration = Field(10.0, description="how long steps under way may take to finish at the end")
    retention: Retention | None = Field(
        None, description="how long everything is kept, or forever; unless given, ended runs 7 days, the rest forever"
    )
    traces: Path | None = Field(None, description="a folder for each run's trace")
    split: str | None = Field(None, description="module:NAME of a Split, whose libraries live runs are divided between")


class Learning(Section):
    """What runs teach later ones."""

    enabled: bool = Field(False, description="runs get advice from their domain's playbook, and feed it")
    form: Literal["steps", "turns", "system"] = Field(
        "steps", description="the next call at every step, a demonstration before the task, or a line of text"
    )
    demonstrations: int | None = Field(
        None, ge=0, le=5, description="strategies told to a run at most; unless given, 3 where a model can use several"
    )
    pitfalls: int = Field(3, ge=0, le=10, description="of the tools at hand, told to a run at most; other bullets, too")
    lookups: bool = Field(True, description="a run whose value was refused is told where earlier runs found it")
    holdout: float = Field(0.05, ge=0, lt=1, description="share of runs without advice, to measure its effect")
    needed: int = Field(2, ge=1, description="successes before a pattern is offered that nobody has rated")
    shared: bool = Field(False, description="whether what one principal's runs teach is offered to all")
    folder: Path | None = Field(None, description="keeps playbooks as JSON Lines there instead of in the store")


class AccessTokens(Section):
    """Tokens of an authorization server (JWT, OAuth 2.1): who may come in besides those of `tokens`."""

    issuer: str = Field(pattern=r"^https?://\S+$", description="who signs them, as they say in `iss`")
    audience: str = Field(pattern=r"^https?://\S+$", description="this service's address, as they say in `aud`")
    jwks: str | None = Field(None, min_length=1, description="a file or an address with its keys; else it is asked")
    scopes: dict[str, Permissions] = Field(default_factory=dict, description="permissions by scope")
    permissions: Permissions = Field(default_factory=list, description="of everybody who has such a token")
    claim: str = Field("sub", min_length=1, description="the claim that says who it is; they are `oauth:VALUE`")


class Http(Section):
    """`journeyman serve`."""

    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65_535)
    tokens: Path | None = Field(None, description="the file that says who may use the service")
    oauth: AccessTokens | None = Field(None, description="tokens of an authorization server, too")
    tls_cert: Path | None = Field(None, description="a certificate chain (PEM), to serve https")
    tls_key: Path | None = Field(None, description="its key, if it is not in the same file")
    root_path: str = Field("", description="where a proxy shows the service, e.g. /journeyman")
    origins: list[str] = Field(default_factory=list, description="whose pages may use the service, too")
    forwarded_allow_ips: list[str] = Field(
        default_factory=list,
        description="proxies whose X-Forwarded-For and -Proto are believed: addresses or networks",
    )
    workers: int | None = Field(None, ge=0, description="worker processes beside the service (PostgreSQL)")
    requests_per_minute: int = Field(1_200, gt=0, description="of one principal, or of one address without a token")
    body_bytes: int = Field(1_000_000, gt=0, description="how large a request may be")
    connections: int = Field(1_000, gt=0, description="at once")
    connections_per_address: int = Field(500, gt=0, description="at once from one address; a proxy is one address")

    @model_validator(mode="after")
    def _whole(self) -> Http:
        if self.tls_key is not None and self.tls_cert is None:
            raise ValueError("'tls_key' needs 'tls_cert'")
        return self


SlackMethod = Literal[
    "apps.connections.open",
    "auth.test",
    "chat.postEphemeral",
    "chat.postMessage",
    "chat.update",
    "conversations.history",
    "conversations.info",
    "conversations.members",
    "conversations.open",
    "conversations.replies",
    "users.info",
    "views.open",
    "views.publish",
]
"""The methods of Slack's Web API that are called."""


def _ids(pattern: str, example: str) -> AfterValidator:
    whole = re.compile(pattern)

    def checked(value: str) -> str:
        if not whole.fullmatch(value):
            raise ValueError(f"must be an id of Slack such as {example}, and no name")
        return value

    return AfterValidator(checked)


SlackTeam = Annotated[str, _ids(r"T[A-Z0-9]{2,}", "T0123ABCD")]
SlackUser = Annotated[str, _ids(r"[UW][A-Z0-9]{2,}", "U0456EFGH")]
SlackUsers = Annotated[str, _ids(r"[UW][A-Z0-9]{2,}|\*", "U0456EFGH, or '*' for everybody")]
SlackChannel = Annotated[str, _ids(r"[CG][A-Z0-9]{2,}", "C0789IJKL")]


class SlackWorkspace(Section):
    """A workspace of Slack, by its id: who may ask there, where, and what they may do."""

    bot_token: LateSecretText | None = Field(
        None, description="the app's Bot User OAuth Token there; only by `${NAME}` or `file:PATH`"
    )
    channels: list[SlackChannel] | None = Field(None, description="where it answers, by id; in all unless given")
    direct_messages: bool = Field(True, description="whether it answers those, too")
    users: list[SlackUser] | None = Field(None, description="who may ask, by member id; everybody unless given")
    permissions: dict[SlackUsers, Permissions] = Field(
        default_factory=dict, description="what people may do, by member id; `*` is everybody of the workspace"
    )
    approvers: list[SlackUser] = Field(
        default_factory=list, description="who may decide about approvals and unknown outcomes, by member id"
    )


class Slack(Section):
    """`journeyman slack`."""

    mode: Literal["socket", "http"] = Field("socket", description="how Slack reaches it: Socket Mode, or requests")
    app_token: LateSecretText | None = Field(
        None, description="for Socket Mode; only by `${NAME}` or `file:PATH`; SLACK_APP_TOKEN unless given"
    )
    signing_secret: LateSecretText | None = Field(
        None, description="for requests; only by `${NAME}` or `file:PATH`; SLACK_SIGNING_SECRET unless given"
    )
    host: str = Field("127.0.0.1", description="where to listen for requests")
    port: int = Field(3000, ge=0, le=65_535)
    workspaces: dict[SlackTeam, SlackWorkspace] = Field(default_factory=dict, description="by id")
    permissions: Permissions = Field(default_factory=list, description="of everybody in these workspaces")
    people: Path | None = Field(
        None, description='a JSON file with what people may do besides: {"slack:TEAM:USER": ["approvals:decide"]}'
    )
    status: Duration = Field(2.0, description="between two edits of a status message")
    rate_limits: dict[SlackMethod, RateText] = Field(
        default_factory=dict, description="other limits than Slack's own, by method"
    )

    @property
    def limits(self) -> dict[str, RateLimit]:
        return {str(name): rate for name, rate in self.rate_limits.items()}


class Doors(Section):
    """Ways in for people and programs."""

    http: Http = Http()
    slack: Slack = Slack()


ModelText: TypeAlias = Annotated[
    Annotated[ModelSettings, Tag("settings")] | Annotated[SecretText, Tag("name")],
    Discriminator(lambda value: "settings" if isinstance(value, dict | ModelSettings) else "name"),
]
"""A name alone, or one with how it is asked."""


class Settings(Section):
    """The whole file."""

    version: Literal[1] = Field(description="of this format")
    environment: Environment = Field("development", description="where this installation runs")
    store: SecretText = Field(
        "sqlite:///journeyman.db", description="sqlite:///FILE or postgresql://USER@HOST/DATABASE"
    )
    model: ModelText | None = Field(None, description="for agents that name none; else it is looked for")
    agent: str | None = Field(None, description="who answers: module:agent or FILE.gram; else an assistant")
    toolkits: list[str] | None = Field(
        None,
        description="tools that come with Journeyman: tasks, local, hello, slack; or module:library. "
        "Unless given, tasks where the file brings no tools of its own",
    )
    tools: dict[str, Tool] = Field(default_factory=dict, description="by name, `*` for several")
    categories: dict[str, Category] = Field(default_factory=dict, description="by name")
    intents: dict[str, Intent] = Field(default_factory=dict, description="types of requests, by name")
    mcp: dict[str, McpServer] = Field(default_factory=dict, description="by name")
    openapi: dict[str, OpenApi] = Field(default_factory=dict, description="APIs by name")
    limits: Limits = Limits()
    policy: Rules = Rules()
    approvals: Approvals = Approvals()
    runs: Runs = Runs()
    learning: Learning = Learning()
    doors: Doors = Doors()

    @model_validator(mode="after")
    def _one_source_by_name(self) -> Settings:
        if twice := sorted(self.mcp.keys() & self.openapi.keys()):
            raise ValueError(f"{twice[0]!r} stands under 'mcp' and under 'openapi': give one of them another name")
        return self

    @property
    def sources(self) -> dict[str, McpServer | OpenApi]:
        return {**self.mcp, **self.openapi}

    def section(self, source: str) -> str:
        """Under which key a source stands."""
        return "openapi" if source in self.openapi else "mcp"

    def elsewhere(self, environment: Environment) -> Settings:
        """The same settings in another environment."""
        return self.model_copy(update={"environment": environment})

    def tool(self, name: str) -> Tool | None:
        """A tool's settings in this environment: its own over those of patterns that it fits, longer ones first."""
        fitting = [key for key in self.tools if key == name or (is_pattern(key) and fnmatchcase(name, key))]
        merged: Tool | None = None
        for key in sorted(fitting, key=lambda key: (key == name, len(key))):
            said = self.tools[key].in_environment(self.environment)
            merged = said if merged is None else merged.overridden(said)
        return merged


RESTART = ("store", "agent", "runs", "doors")
"""What holds from the start of a process to its end."""
VARIABLES: dict[str, tuple[str, ...]] = {
    "JOURNEYMAN_ENVIRONMENT": ("environment",),
    "JOURNEYMAN_STORE": ("store",),
    "JOURNEYMAN_MODEL": ("model",),
    "JOURNEYMAN_TOKENS": ("doors", "http", "tokens"),
}
"""Environment variables that win over the file, and what they set."""
