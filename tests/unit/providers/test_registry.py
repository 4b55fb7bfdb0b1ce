import sys

import onnxruntime
import pytest

from bundler.model.errors import EnvironmentMissingError, ProfileError
from bundler.providers import registry
from bundler.providers.registry import find_provider, provider_names


class FakeEntry:
    def __init__(self, name, value):
        self.name = name
        self.value = "elsewhere:PROVIDER"
        self._value = value

    def load(self):
        return self._value


@pytest.fixture
def entries(monkeypatch):
    """Registers what the test puts into it, beside nothing else."""
    found = []
    monkeypatch.setattr(registry, "registered_names", lambda _: tuple(sorted(entry.name for entry in found)))
    monkeypatch.setattr(registry, "find_registered", lambda _, name: next((e for e in found if e.name == name), None))
    find_provider.cache_clear()
    yield found
    find_provider.cache_clear()


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A package that registers providers under names of its own choice, found after bundler."""
    (tmp_path / "foreign.py").write_text(
        "from bundler.providers.knowledge import ProviderKnowledge\n"
        'PROVIDER = ProviderKnowledge(name="cpu", runtime_name="CPUExecutionProvider", title="Foreign", package="p")\n'
    )
    about = tmp_path / "foreign-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1\n")
    points = "".join(f"{name} = foreign:PROVIDER\n" for name in ("cpu", "abacus"))
    (about / "entry_points.txt").write_text(f"[bundler.providers]\n{points}")
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])


@pytest.mark.usefixtures("foreign")
def test_no_package_takes_the_place_of_what_is_built_in():
    assert "abacus" in provider_names()
    assert find_provider.__wrapped__("abacus").title == "Foreign"
    assert find_provider.__wrapped__("cpu").title != "Foreign"
    assert registry.find_by_runtime_name.__wrapped__("CPUExecutionProvider").title != "Foreign"


def test_cpu_is_registered_as_third_parties_register():
    assert "cpu" in provider_names()
    assert find_provider("cpu").runtime_name == "CPUExecutionProvider"


def test_the_runtime_has_the_cpu_provider_by_that_name():
    assert find_provider("cpu").runtime_name in onnxruntime.get_all_providers()


def test_unknown_provider_is_answered_with_the_known_ones():
    wanted = r"no execution provider 'cpuu' \(known: acl, .*, cpu, .*, xnnpack\); did you mean \"cpu\"\?"
    with pytest.raises(ProfileError, match=wanted):
        find_provider("cpuu")


def test_another_packages_provider_is_found(entries):
    knowledge = find_provider.__wrapped__  # the plain function, to show that nothing is remembered from before
    entries.append(
        FakeEntry("own", real := registry.ProviderKnowledge(name="own", runtime_name="Own", title="", package="p"))
    )
    assert provider_names() == ("own",)
    assert knowledge("own") is real


def test_an_entry_point_of_the_wrong_kind_is_named(entries):
    entries.append(FakeEntry("own", 42))
    with pytest.raises(EnvironmentMissingError, match=r"bundler\.providers:own"):
        find_provider("own")


def test_a_stale_installation_says_so(entries):
    assert entries == []
    with pytest.raises(EnvironmentMissingError) as raised:
        provider_names()
    assert "install it again" in str(raised.value.hint)
