"""What is counted of the house: no import cycle, and a search for one that finds one."""

from studies.house import cycles, imports


def test_modules_do_not_import_each_other_in_circles_not_even_inside_functions() -> None:
    assert cycles(imports()) == []


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
