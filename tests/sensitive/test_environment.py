"""What a child process gets to see of this program's environment."""

from __future__ import annotations

from journeyman.sensitive.environment import clean_environment


def test_places_and_language_are_passed_on_and_nothing_that_gives_access() -> None:
    given = {
        "PATH": "/bin",
        "HOME": "/home/ada",
        "LANG": "C",
        "LC_ALL": "C",
        "TZ": "UTC",
        "TMPDIR": "/tmp",
        "https_proxy": "http://proxy:3128",
        "HTTP_PROXY": "http://ada:pw@proxy:3128",
        "OPENAI_API_KEY": "sk-1",
        "AWS_SECRET_ACCESS_KEY": "x",
        "JOURNEYMAN_SECRET_TOKEN": "hunter2",
        "DATABASE_URL": "postgresql://a:b@c/d",
        "GITHUB_TOKEN": "t",
        "LD_PRELOAD": "/evil.so",
        "SSH_AUTH_SOCK": "/run/agent",
    }
    assert sorted(clean_environment(given)) == ["HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "https_proxy"]
