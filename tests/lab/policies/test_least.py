"""The least of many numbers that change."""

from hypothesis import given
from hypothesis import strategies as st

from fairpool_lab.policies.least import Least

CHANGES = st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.integers(-3, 3)), max_size=80)


@given(CHANGES)
def test_it_is_what_looking_at_all_of_them_finds(changes):
    least, numbers = Least(), {}
    for name, number in changes:
        if number is None:
            least.discard(name)
            numbers.pop(name, None)
        else:
            least.put(name, number)
            numbers[name] = number
        assert bool(least) == bool(numbers)
        assert all((other in least) == (other in numbers) for other in "abcd")
        if numbers:
            assert least.first() == min((number, name) for name, number in numbers.items())
            assert all(least.number(name) == number for name, number in numbers.items())


def test_what_is_out_of_date_takes_no_more_room_than_what_is_true():
    least = Least()
    for number in range(10_000):
        least.put("abcdefghij"[number % 10], number)
        assert len(least._heap) <= 2 * 10 + 17
