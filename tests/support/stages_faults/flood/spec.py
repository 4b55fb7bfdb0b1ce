from bundler.model.stage import StageSpec

SPEC = StageSpec(name="flood", title="flood it", inputs=("model",), produces=None)
