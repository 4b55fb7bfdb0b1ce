from bundler.model.stage import StageSpec

SPEC = StageSpec(name="sloppy", title="sloppy it", inputs=("model",), produces="model", changes_model=True)
