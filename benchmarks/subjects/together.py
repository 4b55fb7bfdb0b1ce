"""What is gained by building several bundles at once: two jobs beside one."""

from __future__ import annotations

from bars import set_bar
from document import Row, Section, Table
from models import choose, make_ready
from pairs import alternate, show_number, show_ratio, show_seconds
from processes import BUNDLER, run_timed
from workplace import TARGET, Workplace

BAR = 1.6
MODELS = ("rapidocr_cls", "rapidocr_det", "magika", "resnet50")
KINDS = {"verified": (), "--no-prove": ("--no-prove",)}


def measure(workplace: Workplace) -> Section:
    models = [str(make_ready(model, workplace.folder / "models").path) for model in choose(MODELS)]
    rows = tuple(_measure(workplace, models, kind, arguments) for kind, arguments in KINDS.items())
    return Section(
        name="together",
        title="two jobs at once",
        method=(
            f"`bundler build` of {', '.join(MODELS)} for {TARGET} in one call with empty caches of steps, with "
            "`--jobs 2` and with `--jobs 1` in turns; whole processes (the line below says "
            "how many cores)."
        ),
        tables=(Table(columns=("build", "two jobs", "one job", "one over two", "bar", ""), rows=rows),),
    )


def _measure(workplace: Workplace, models: list[str], kind: str, arguments: tuple[str, ...]) -> Row:
    def build(jobs: str) -> float:
        workplace.forget_steps()
        command = [BUNDLER, "build", *models, "--target", TARGET, "--output", str(workplace.empty("out"))]
        command += ["--progress", "none", "--cache", str(workplace.cache), "--jobs", jobs, *arguments]
        return run_timed(command).seconds

    pairs = alternate(lambda: build("1"), lambda: build("2"), workplace.pick(2, 5))
    bar = set_bar(kind, pairs.ratios, BAR, at_least=True)
    shown = show_seconds(pairs.theirs), show_seconds(pairs.ours), show_ratio(pairs)
    return (kind, *shown, f"at least {show_number(BAR)} times", bar)
