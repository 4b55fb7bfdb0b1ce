"""What a web profile may and may not say."""

import pytest

from bundler.model.errors import UsageError
from bundler.profiles.resolve import resolve_target


@pytest.mark.parametrize(
    ("target", "override", "reported"),
    [
        ("linux-x64", "bundle.ecosystem='web'", "a web bundle runs in a browser, not on linux"),
        ("linux-x64", "variants=[{name='gpu', providers=[{name='webgpu'}]}]", '"webgpu" runs in browsers only'),
        ("web-wasm", "variants=[{name='cpu', providers=[{name='cpu'}]}]", '"cpu" is not in the runtime of browsers'),
        ("web-wasm", "bundle.ecosystem='python'", "there are no Python wheels for web on wasm32"),
        ("web-wasm", "variants.wasm.keep_on_device=true", '"wasm" keeps its tensors in the CPU\'s memory'),
        ("web-wasm", "variants.wasm.session.enable_graph_capture=true", '"wasm" has no GPU commands'),
        ("web-wasm", "variants.wasm.session.enable_mem_reuse=true", "unknown option"),
        (
            "web-wasm",
            "variants=[{name='self-test', providers=[{name='wasm'}]}]",
            'variants[0].name: "self-test" is the import with the golden set: rename the variant',
        ),
        ("web-webgpu", "variants.webgpu.providers=[{name='webgpu', options={preferredLayout='NWHC'}}]", '"NHWC"'),
        ("linux-x64", "variants.cpu.session.enable_graph_capture=true", "unknown option"),
    ],
)
def test_what_does_not_fit_a_browser_is_reported(target: str, override: str, reported: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_target(target, (override,))
    assert reported in "\n".join(caught.value.details)


def test_a_gpu_variant_takes_what_the_browser_has() -> None:
    overrides = ("variants.webgpu.keep_on_device=true", "variants.webgpu.session.enable_graph_capture=true")
    variant = resolve_target("web-webgpu", overrides).variants[0]
    assert variant.keep_on_device
    assert variant.session == {"enable_graph_capture": True}
