"""Credentials by shape, addresses in all spellings, and what is left of a text when both are cut out."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.sensitive.addresses import (
    host_address,
    is_metadata,
    is_public,
    mentions_metadata,
    url_is_internal,
)
from journeyman.sensitive.files import names_secret_file, secret_parts
from journeyman.sensitive.tokens import MASK, bare_url, holds_token, redacted, redacted_value, url_carries_secret

METADATA = [
    "169.254.169.254",
    "169.254.169.254.",
    "2852039166",
    "0xA9FEA9FE",
    "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "0251.254.43518",
    "169.254.43518",
    "169.16689662",
    "425.510.425.510",
    "[::ffff:169.254.169.254]",
    "::ffff:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "fd00:ec2::254",
    "fe80::1%eth0",
    "100.100.100.200",
    "Metadata.Google.Internal.",
    "metadata",
    "169.254.169.254.nip.io",
    "１６９.254.169.254",
    "169。254。169。254",
]


@pytest.mark.parametrize("host", METADATA)
def test_metadata_services_are_known_in_every_spelling(host: str) -> None:
    assert is_metadata(host)
    literal = host if ":" not in host or host.startswith("[") else f"[{host.partition('%')[0]}]"
    assert url_is_internal(f"http://{literal}/latest")


@pytest.mark.parametrize(
    "host", ["example.org", "8.8.8.8", "metadata.example.org", "10.0.0.1", "999", "1.2.3.4.5", "::1", ""]
)
def test_other_hosts_are_none(host: str) -> None:
    assert not is_metadata(host)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("10.0.0.1", False),
        ("::1", False),
        ("::ffff:10.0.0.1", False),
        ("2606:4700::1111", True),
        ("x", False),
    ],
)
def test_public_addresses_are_told_from_private_ones(address: str, public: bool) -> None:
    assert is_public(address) is public


@given(st.text(max_size=60))
def test_whatever_a_host_is_called_it_is_read(host: str) -> None:
    host_address(host)
    is_metadata(host)
    url_is_internal(f"http://{host}/")
    url_carries_secret(f"http://{host}/{host}?{host}")
    bare_url(f"http://{host}/{host}?{host}#{host}")
    redacted(host)


def test_what_may_be_logged_of_an_address() -> None:
    assert bare_url("https://ada:pw@example.org:8080/a/b?token=x#y") == "https://example.org:8080/a/b"
    assert bare_url("https://api.telegram.org/bot123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/get") == (
        f"https://api.telegram.org/{MASK}/get"
    )
    assert bare_url("http://[broken") == MASK


def test_what_is_left_of_a_text() -> None:
    token = "ghp_" + "aB3" * 12
    assert redacted(f"use {token}, then https://u:p@example.org/a?q=1#f!") == f"use {MASK}, then https://example.org/a"
    assert redacted("password = hunter2x and more") == f"password = {MASK} and more"
    assert redacted("nothing to hide here: 42") == "nothing to hide here: 42"
    red, plain = "\x1b[31;1m", "\x1b[0m"
    assert redacted(f"{red}{token}{plain}") == f"{red}{MASK}{plain}"
    assert redacted(f"{red}password{plain}={red}hunter2x{plain}") == f"{red}password{plain}={red}{MASK}{plain}"
    assert redacted_value({"a": [token, 1, None], "password": "x"}) == {"a": [MASK, 1, None], "password": MASK}
    assert not holds_token("task-12345678901234567890 and risk-averse people")


def test_parts_of_a_path_are_judged_like_the_path() -> None:
    assert secret_parts(("deep", ".ssh", "config"))
    assert secret_parts(("Passwords.TXT",))
    assert not secret_parts(("src", "passwords.py"))


FAMILIES = [
    *("work/.bashrc", "home/.zshenv", "work/bash-history", "work/.mycli-history", "app/login data"),
    *("db/connections.xml", "db/mongoid.yml", "conf/my.cnf", "work/pgpass", "ops/hostapd.conf", "ops/wg1.conf"),
    *("work/.vscode/sftp.json", "work/.idea/WebServers.xml", "work/confCons.xml", "data/servers.rtsz"),
    *("work/otr.fingerprints", "work/.config/doctl/config.yaml", "work/irssi/config", "work/offlineimaprc"),
    *(
        "work/firebase-tools.json",
        "work/gcloud.json",
        "work/TokenCache.dat",
        "ops/.terraform/x",
        "ops/prod.tfvars.json",
    ),
    *("work/github-token", "work/deploy_key", "work/myprivatekey", "work/api_key", "work/mycredentials.dat"),
    *("work/service-account-prod.json", "work/group-vault.yml", "work/id_rsa_work", "work/krb5cc_1000"),
    *("work/UTC--2020-01-01--ab", "work/kwallet", "data/a.keypair", "data/a.pass", "data/prod.env", "data/a.netrc"),
    *("work/wp-config.php.bak", "work/.npmrc.old", "work/credentials.json~", "work/secrets.doc", "work/pass.xlsx"),
    *("work/running-config", "work/SAM", "work/vault.ini", "certs/a.txt", "work/prod.secret.exs", "work/secrets.py"),
    *(
        "work/mcp.json",
        "api.postman_environment.json",
        "work/jenkins.plugins.publish_over_ssh.BapSshPublisherPlugin.xml",
    ),
]


@pytest.mark.parametrize("path", FAMILIES)
def test_files_of_every_family_that_keeps_credentials_are_known(path: str) -> None:
    assert names_secret_file(path)


@pytest.mark.parametrize(
    "text",
    [
        *("username/password", "feature/refresh-token", "/oauth/token", "awslabs/git-secrets", "digitalocean/doctl"),
        *("src/token", "lib/credentials.ts", "src/secrets.py", "docs/passwords.md", "design-tokens.json"),
        *("special_tokens_map.json", "main.py.bak", "notes.old", "/private/tmp/out.json", "storage/private/.gitignore"),
        *("src/history", "src/functions", "version-history.md", ".config/dotnet-tools.json", "release-1.2.1"),
    ],
)
def test_what_only_sounds_like_one_is_not(text: str) -> None:
    assert not names_secret_file(text)


def test_cloud_services_that_hand_out_credentials_under_other_names_are_known() -> None:
    assert url_is_internal("http://api.metadata.cloud.ibm.com/instance_identity/v1/token")
    assert mentions_metadata("curl http://localhost:9001/2018-06-01/runtime/invocation/next")


HOSTILE = [
    ".1",
    "a.bak",
    "a-b",
    "/",
    "/.",
    "a:",
    "a/b ",
    "eyJ",
    " AKIA",
    "http://a/",
    "%25",
    " sk-",
    "password=",
    "\\",
    "/etc/",
    "aB3/",
    "ａ/",
]


@pytest.mark.parametrize(
    ("text", "is_token"),
    [
        ("use zzq_BQuu9ChDu3n6Pfh6YQnCshpoYkWDSFKogLqm for it", True),  # of an issuer that nobody has heard of
        ("zzq_live_BQuu9ChDu3n6Pfh6YQnCshpoYkWDSFKogLqm", True),
        ("the payment pi_3MtwBwLkdIwHu7ix28a3tqPa", False),  # the id of a thing
        ("run_01a1e6e6123dd706b7003c88a1e6e6123dd706b7", False),
        ("a_function_whose_name_has_more_than_thirty_two_letters", False),
        ("clientSecret := ahDzWAqqBHgpAeUBUULuU0gA4p", True),
        ("[DEBUG] Using Key=yw3k9tq1zt5xd6x0vjf7ykmnhqaqbsd1", True),  # small letters and digits
        ("os.environ['SHOP_ACCESS_KEY'] = '4bb9dde93fe749ce229371fa03cab134'", True),  # a hash, under such a name
        ("shopToken := 3b1e66ad-11f0-4a75-9c1c-6f1f0d1d2a55", True),
        ("shop token - 'GbQvWzMTfKXLqRpUzJdHnVcTsWqBxZ'", True),  # letters alone, which make no words
        ('{\\"auth\\": {\\"shop_secret\\": \\"n7Qd2-xk40Zb-91tW\\"}}', True),  # JSON in JSON
        ("const shopKey string = 'TQAWki0p7vDI6OP8DyWvnV-vgoUpXIug'", True),
        ("shop-secret-5f4dcc3b5aa765d61d8327deb882cf99", True),
        ("password   =>   'correcthorse'", True),
        ("SHOP_PASS=whitehorse", True),
        ("cache_key: 5f4dcc3b5aa765d61d8327deb882cf99", False),  # the key of a row
        ("key: customers/2024/01/export_20240115.csv", False),
        ("kubectl get pod auth-service-7d9f8b6c5-x2kqp", False),
        ("password = env.SHOP_PASSWORD", False),
        ("accountKey = Buffer.from('accountKey', 'base64')", False),
        ("compass: heading=127.5", False),
        ("License: LGPL-2.1+", False),
        ('"password": "string", "secret": "required"', False),
    ],
)
def test_a_token_is_known_by_a_short_prefix_and_a_long_random_word(text: str, is_token: bool) -> None:
    assert holds_token(text) is is_token


@pytest.mark.parametrize("piece", HOSTILE)
def test_long_texts_are_judged_in_time_that_grows_with_them_at_most(piece: str) -> None:
    short, long = ((piece * (size // len(piece) + 1))[:size] for size in (20_000, 640_000))
    checks = (names_secret_file, holds_token, url_carries_secret, url_is_internal)

    def seconds(text: str) -> float:
        before = time.thread_time()
        for check in checks:
            check(text)
        return time.thread_time() - before

    # Thirty-two times the text; the square of that would be a thousand times.
    assert min(seconds(long) for _ in range(3)) < 200 * max(min(seconds(short) for _ in range(3)), 0.001)
