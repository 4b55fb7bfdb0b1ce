from bundler.profiles.machines import CORES


def test_a_core_belongs_to_one_architecture():
    names = [name for cores in CORES.values() for name in cores if name != "max"]
    assert len(names) == len(set(names))
