"""The scripts around `otter grade`, as far as they need no container."""

import json
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture(autouse=True)
def scripts_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


def docker(*arguments: str) -> subprocess.CompletedProcess:
    command = [SCRIPTS / "podman-as-docker" / "docker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# How pip reaches packages


def settings(key: str, value: str):
    from build_image import PipSettings

    made = PipSettings()
    made.add(key, value)
    return made.variables, made.volumes


def test_addresses_are_passed_on_as_they_are():
    assert settings("index-url", "https://packages.test/simple") == (
        {"PIP_INDEX_URL": "https://packages.test/simple"},
        {},
    )


def test_a_folder_of_wheels_is_bound(tmp_path):
    assert settings("find-links", str(tmp_path)) == ({"PIP_FIND_LINKS": "/mnt/pip/0"}, {str(tmp_path): "/mnt/pip/0"})


def test_a_local_index_is_bound_with_the_files_beside_it(tmp_path):
    (tmp_path / "simple").mkdir()
    variables, volumes = settings("extra-index-url", f"file://{tmp_path}/simple https://packages.test/simple")
    assert variables == {"PIP_EXTRA_INDEX_URL": "file:///mnt/pip/0/simple https://packages.test/simple"}
    assert volumes == {str(tmp_path): "/mnt/pip/0"}


def test_two_settings_share_a_bound_folder_and_others_get_their_own(tmp_path):
    from build_image import PipSettings

    (tmp_path / "cert.pem").touch()
    made = PipSettings()
    made.add("find-links", str(tmp_path))
    made.add("cert", str(tmp_path / "cert.pem"))
    made.add("find-links", str(tmp_path))
    assert made.variables == {"PIP_FIND_LINKS": "/mnt/pip/0", "PIP_CERT": "/mnt/pip/1"}
    assert len(made.volumes) == 2


# Comparing


def test_equal_marks_agree(capsys):
    from container_check import compare

    compare({"first": 1.0, "second": 2.5}, {"second": 2.5, "first": 1.0}, "otter grade")
    assert capsys.readouterr().out == "otter grade: 3.5 points, the same in all 2 questions\n"


@pytest.mark.parametrize("found", [{"first": 1.0, "second": 2.0}, {"first": 1.0}, {}], ids=["other", "fewer", "none"])
def test_a_question_with_other_marks_or_none_is_named(found):
    from container_check import Disagreement, compare

    with pytest.raises(Disagreement, match=r"second: autograder 2\.5, otter (2\.0|None)"):
        compare({"first": 1.0, "second": 2.5}, found, "otter grade")


# Without containers


@pytest.fixture
def examples(tmp_path):
    from container_check import EXAMPLES

    for name in EXAMPLES:
        (tmp_path / f"{name}.ipynb").touch()
    return tmp_path


def test_says_loudly_that_nothing_was_checked(examples, monkeypatch, capsys):
    import container_check
    import containers

    monkeypatch.setattr(containers.shutil, "which", lambda name: None)
    monkeypatch.setattr(containers.os, "geteuid", lambda: 1000)
    monkeypatch.setattr("sys.argv", ["container_check", "--examples", str(examples)])
    assert container_check.main() == 3
    assert "NOT CHECKED" in capsys.readouterr().err


def test_missing_examples_are_a_wrong_usage(tmp_path, monkeypatch, capsys):
    import container_check

    monkeypatch.setattr("sys.argv", ["container_check", "--examples", str(tmp_path)])
    assert container_check.main() == 2
    assert "no full-marks.ipynb" in capsys.readouterr().err


# Podman under Docker's name


def test_answers_what_otter_asks_of_buildx():
    assert docker("buildx", "inspect").stdout == "Name: default\nDriver: docker\n"
    [builder] = docker("buildx", "ls", "--format", "{{json .}}").stdout.splitlines()
    assert json.loads(builder)["Driver"] == "docker"


def test_refuses_what_podman_cannot_do():
    refused = docker("buildx", "bake")
    assert refused.returncode == 125
    assert "no 'buildx bake'" in refused.stderr
