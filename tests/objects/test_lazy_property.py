"""What is computed when it is first read."""

from __future__ import annotations

from moorage.objects.lazy_property import lazy_property


class Square:
    """Counts how often it is computed."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.computed = 0

    @lazy_property
    def area(self) -> int:
        """The side times itself."""
        self.computed += 1
        return self.side**2


def test_each_object_computes_it_once() -> None:
    small, large = Square(2), Square(3)

    assert [small.area, small.area, large.area] == [4, 4, 9]
    assert (small.computed, large.computed) == (1, 1)


def test_the_class_has_its_description() -> None:
    assert Square.area.__doc__ == "The side times itself."
