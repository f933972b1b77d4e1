"""The files of the deployment page are read by the programs that they are for, and call ours as it can be called.

`systemd-analyze`, `nginx`, `caddy` and `docker compose` are used where this machine has them. Without them only the
structure of the files is checked, and what they call.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT, blocks
from tests.docs.test_pages import assert_usage
from tests.waiting import WAIT_SECONDS

PAGE = ROOT / "docs" / "deployment.md"
FILES = {block.title: block.text for block in blocks(PAGE) if block.title is not None}
COMPOSE = yaml.safe_load(FILES["compose.yaml"])


def checked(*command: str | Path) -> None:
    """Run the program that will read the file; nothing where it is not installed."""
    if shutil.which(command[0]) is not None:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    text = FILES["journeyman.service"]
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names of settings have capitals
    unit.read_string(text)
    assert set(unit) == {"DEFAULT", "Unit", "Service", "Install"}
    assert_usage(unit["Service"]["ExecStart"], "ExecStart")
    # The environment of the page is not here: another program stands for the one it starts.
    file = tmp_path / "journeyman.service"
    file.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={sys.executable}", text))
    checked("systemd-analyze", "verify", "--man=no", file)


@pytest.mark.parametrize("name", ["journeyman.conf", "journeyman-path.conf"])
def test_the_proxy_settings_are_ones_that_nginx_takes(name: str, tmp_path: Path) -> None:
    text = FILES[name]
    assert text.count("{") == text.count("}")
    assert all(line.strip().endswith((";", "{", "}")) for line in text.splitlines() if line.strip())
    for needed in ("proxy_buffering off;", "proxy_http_version 1.1;", "X-Forwarded-Proto $scheme;", "Host $http_host;"):
        assert needed in text
    certificate, key = tmp_path / "fullchain.pem", tmp_path / "privkey.pem"
    checked(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"),
        *("-subj", "/CN=agents.example.com", "-keyout", key, "-out", certificate),
    )
    server = text.replace("/etc/ssl/journeyman", str(tmp_path))
    folders = "".join(
        f"{kind}_temp_path {tmp_path}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {folders} {server} }}"
    )
    checked("nginx", "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf")


def test_the_proxy_settings_are_ones_that_caddy_takes(tmp_path: Path) -> None:
    assert "reverse_proxy 127.0.0.1:8000" in FILES["Caddyfile"]
    (tmp_path / "Caddyfile").write_text(FILES["Caddyfile"])
    checked("caddy", "validate", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile")


@pytest.mark.parametrize("service", ["serve", "worker"])
def test_a_container_starts_our_program_with_options_that_it_takes(service: str) -> None:
    described = COMPOSE["services"][service]
    assert_usage(" ".join(["journeyman", *described["command"]]), service)
    assert set(described["secrets"]) <= COMPOSE["secrets"].keys()
    assert set(described["depends_on"]) <= COMPOSE["services"].keys()
    assert described["environment"]["JOURNEYMAN_STORE"].startswith("postgresql://")


def test_the_compose_file_is_whole(tmp_path: Path) -> None:
    volumes = [
        volume.split(":")[0] for service in COMPOSE["services"].values() for volume in service.get("volumes", ())
    ]
    assert set(volumes) == COMPOSE["volumes"].keys()
    known = subprocess.run(["docker", "compose", "version"], capture_output=True) if shutil.which("docker") else None
    if known is None or known.returncode != 0:
        return
    for name in ("compose.yaml", "Dockerfile"):
        (tmp_path / name).write_text(FILES[name])
    (tmp_path / ".env").write_text("POSTGRES_PASSWORD=x\nJOURNEYMAN_AUDIT_KEY=y\n")
    (tmp_path / "tokens.json").write_text("{}")
    checked("docker", "compose", "--project-directory", tmp_path, "config", "--quiet")


def test_the_image_is_built_from_the_checkout() -> None:
    words = [line.split(" ", 1) for line in FILES["Dockerfile"].splitlines()]
    assert [word for word, _ in words] == ["FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT"]
    assert "/src[serve,postgres,embedded]" in words[2][1]
