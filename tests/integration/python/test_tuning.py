"""`Model(threads=…, spinning=…)` and the environment, on a package as a user has it."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.integration.python.packages import Package, imported
from tests.support import models

SPIN = "session.intra_op.allow_spinning"


def seen(model: Any) -> tuple[int, str]:
    """What the session was opened with."""
    options = model._runner._session.get_session_options()
    return options.intra_op_num_threads, options.get_session_config_entry(SPIN)


def test_arguments_reach_the_runtime(module: ModuleType) -> None:
    assert seen(module.Model()) == (1, "0")
    assert seen(module.Model(threads=3)) == (3, "0")
    model = module.Model(threads=2, spinning=True)
    assert seen(model) == (2, "1")
    assert model.self_test().passed
    assert model.report.remark == ""


def test_the_environment_does_and_an_argument_comes_first(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNDLER_THREADS", "3")
    monkeypatch.setenv("BUNDLER_SPINNING", "1")
    assert seen(module.Model()) == (3, "1")
    assert seen(module.Model(threads=1, spinning=False)) == (1, "0")


def test_a_wrong_value_ends_a_command_with_what_to_do(package: Package) -> None:
    done = package.call("self-test", BUNDLER_THREADS="many")
    assert done.returncode == 2
    assert "BUNDLER_THREADS='many' is not a number of threads" in done.stderr
    assert "set it to a whole number from 0" in done.stderr


def test_what_is_kept_on_the_device_is_the_same_with_any_of_them(prepared: ModuleType) -> None:
    names = ("device_copy", "prepared", "tuning")
    loader = {name: importlib.import_module(f"{prepared.__name__}._loader.{name}") for name in names}
    plain, tuned = (prepared.Model.pins.read().variants[0] for _ in range(2))
    tuned.tuning = loader["tuning"].Tuning(3, spinning=True)
    assert loader["device_copy"]._make_key(plain, "1") == loader["device_copy"]._make_key(tuned, "1")
    assert loader["prepared"]._make_key(plain) == loader["prepared"]._make_key(tuned)


@pytest.fixture
def sessions(module: ModuleType) -> ModuleType:
    return importlib.import_module(f"{module.__name__}._loader.sessions")


@pytest.fixture
def elsewhere(module: ModuleType) -> Any:
    """A variant whose first provider is not the CPU's, asked for three threads."""
    variant = module.Model.pins.read().variants[0]
    variant.providers = [{"name": "OtherExecutionProvider", "options": {"mode": "fast"}}, *variant.providers]
    variant.tuning = importlib.import_module(f"{module.__name__}._loader.tuning").Tuning(3)
    return variant


def test_a_provider_with_threads_of_its_own_gets_them_in_place_of_the_runtime(
    sessions: ModuleType, elsewhere: Any
) -> None:
    own = copy.copy(elsewhere)
    own.providers = [{"name": "OtherExecutionProvider", "options": {"num_of_threads": "8", "mode": "fast"}}]
    assert sessions._adjust_provider(own, own.providers[0]["options"]) == {"num_of_threads": "3", "mode": "fast"}
    assert sessions._make_options(own).intra_op_num_threads == 1
    assert sessions._make_options(elsewhere).intra_op_num_threads == 3
    assert sessions.explain_tuning(own) == ""


def test_what_was_generated_on_the_device_keeps_the_options_it_was_generated_with(
    sessions: ModuleType, elsewhere: Any
) -> None:
    elsewhere.prepare = {"kind": "cache", "thing": "cache"}
    options = {"num_of_threads": "8"}
    elsewhere.providers[0]["options"] = options
    assert sessions._adjust_provider(elsewhere, options) == options
    assert "OtherExecutionProvider decides this itself" in sessions.explain_tuning(elsewhere)


def test_a_provider_for_another_device_is_said_not_to_be_affected(sessions: ModuleType, elsewhere: Any) -> None:
    assert "nodes on the CPU only: OtherExecutionProvider" in sessions.explain_tuning(elsewhere)
    elsewhere.tuning = type(elsewhere.tuning)()
    assert sessions.explain_tuning(elsewhere) == ""


def test_affinities_that_are_not_used_are_reported(sessions: ModuleType, module: ModuleType) -> None:
    variant = module.Model.pins.read().variants[0]
    variant.session_config["session.intra_op_thread_affinities"] = "1;2"
    assert sessions.explain_tuning(variant) == ""
    variant.tuning.threads = 2
    assert "affinities" in sessions.explain_tuning(variant)


def test_named_values_are_checked_on_every_way_to_the_runtime(module: ModuleType) -> None:
    model = module.Model()
    image = np.ones((1, 3, 16, 16), np.float32)
    wanted = model.run(image=image).scores
    for _ in range(2):  # The second call meets what the first remembered.
        (found,) = model.run_named({"image": image}).values()
        np.testing.assert_array_equal(found, wanted)
        for wrong in (image.astype(np.float64), image[0], image[..., :8], None, image.tolist()):
            with pytest.raises(module.InputError) as by_name:
                model.run_named({"image": wrong})
            with pytest.raises(module.InputError) as by_argument:
                model.run(image=wrong)
            assert str(by_name.value) == str(by_argument.value)
        with pytest.raises(module.InputError, match="missing"):
            model.run_named({})
        with pytest.raises(module.InputError, match="no input is named 'more'"):
            model.run_named({"image": image, "more": image})
        for unnamed in (None, 3, "x", [1], image):
            with pytest.raises(module.InputError, match="inputs are given by name"):
                model.run_named(unnamed)
        with pytest.raises(module.InputError, match="no input is named 1"):
            model.run_named({1: image})


def test_what_goes_to_the_runtime_is_what_was_checked(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    model = module.Model()
    given = {"image": np.ones((1, 3, 16, 16), np.float32)}
    runner = model._run_named.__self__
    call = runner._call

    def swap(names: Any, values: Any, options: Any) -> Any:
        given["image"] = np.ones((1, 3, 16, 8), np.float32)  # as another thread does
        return call(names, values, options)

    monkeypatch.setattr(runner, "_call", swap)
    assert model.run_named(given)["scores"].shape == model.run(image=np.ones((1, 3, 16, 16), np.float32)).scores.shape


def test_what_only_resembles_an_array_is_refused_after_a_valid_call_too(module: ModuleType) -> None:
    class Duck:
        dtype, shape = np.dtype(np.float32), (1, 3, 16, 16)

    model = module.Model()
    model.run(image=np.ones((1, 3, 16, 16), np.float32))
    for call in (lambda: model.run(image=Duck()), lambda: model.run_named({"image": Duck()})):
        with pytest.raises(module.InputError, match="not a NumPy array"):
            call()


def test_a_mapping_that_makes_values_is_not_asked_for_any(module: ModuleType) -> None:
    class Maker(dict[str, Any]):
        def __missing__(self, key: str) -> Any:
            raise AssertionError(key)

    with pytest.raises(module.InputError, match="did you mean 'image'"):
        module.Model().run_named(Maker(imgae=np.ones((1, 3, 16, 16), np.float32)))


def test_the_models_own_names_are_accepted_where_they_are_python_names_of_others(
    bundle_of: Callable[..., Package],
) -> None:
    nodes = [models.helper.make_node("Sub", ["x.1", "x_1"], ["y"])]
    ports = [models.value("x.1", [2]), models.value("x_1", [2])]
    difference = models.make_model(nodes, ports, [models.value("y", [2])])
    with imported(bundle_of(difference)) as found:
        values = {"x.1": np.full(2, 5, np.float32), "x_1": np.full(2, 3, np.float32)}
        model = found.Model()
        for given in (values, dict(reversed(values.items())), values):
            assert model.run_named(given)["y"].tolist() == [2, 2]
        python_names = [port.python_name for port in model.inputs]
        assert model.run_named(dict(zip(python_names, values.values(), strict=True)))["y"].tolist() == [2, 2]
