from bundler.model.stage import StageSpec

SPEC = StageSpec(name="dice", title="ask somebody else", inputs=("model",), produces=None, volatile=True)
