"""Where endpoints are: what the command line says goes to one pool each, or is refused with what to say instead."""

from __future__ import annotations

import pytest

from fairpool_lab.errors import OptionInvalid
from fairpool_lab.up.endpoints import given
from fairpool_operator.view import PoolKey

LLAMA, MINI, OTHER = PoolKey("default", "llama"), PoolKey("default", "mini"), PoolKey("other", "llama")
URL, SECOND = "http://127.0.0.1:8000", "https://gpu.example:8443"


def urls(said, key):
    return [endpoint.url for endpoint in said.of(key).given]


class TestWhose:
    def test_without_a_pool_they_are_the_only_ones(self):
        said = given([URL, SECOND], None).settled([LLAMA])
        assert urls(said, LLAMA) == [URL, SECOND]

    def test_a_pool_that_comes_later_has_none_of_them(self):
        assert not given([URL], None).settled([LLAMA]).of(MINI)

    def test_with_a_pool_they_are_that_pools(self):
        said = given([f"llama={URL}", f"mini={SECOND}"], None).settled([LLAMA, MINI])
        assert (urls(said, LLAMA), urls(said, MINI)) == ([URL], [SECOND])

    def test_a_namespace_tells_pools_of_one_name_apart(self):
        said = given([f"other/llama={URL}", f"default/llama={SECOND}"], None).settled([LLAMA, OTHER])
        assert (urls(said, OTHER), urls(said, LLAMA)) == ([URL], [SECOND])

    def test_pools_for_which_none_were_given_are_simulated(self):
        said = given([f"llama={URL}"], 3).settled([LLAMA, MINI])
        assert (said.of(LLAMA).simulated, said.of(MINI).simulated) == (0, 3)

    def test_they_are_over_tls_if_one_is(self):
        assert given([URL, SECOND], None).settled([LLAMA]).of(LLAMA).over_tls
        assert not given([URL], None).settled([LLAMA]).of(LLAMA).over_tls


class TestWhatIsRefused:
    def test_neither_of_the_two_says_which_to_give(self):
        with pytest.raises(OptionInvalid, match=r"--endpoint URL for each that runs.*or --simulate N"):
            given([], None)

    @pytest.mark.parametrize("number", [0, -1, 65])
    def test_a_number_that_cannot_be(self, number):
        with pytest.raises(OptionInvalid, match=r"^--simulate: must be a number of engines from 1 to 64"):
            given([], number)

    @pytest.mark.parametrize(
        "text", ["", "gpu-0", "127.0.0.1:8000", "ftp://gpu:21", "http://gpu", "http://gpu:8000/v1", "llama=", "a=b=c"]
    )
    def test_what_is_no_url(self, text):
        with pytest.raises(OptionInvalid, match=r"^--endpoint: must be http://HOST:PORT or https://HOST:PORT"):
            given([text], None)

    def test_a_password_in_a_url_is_not_repeated(self):
        with pytest.raises(OptionInvalid) as refused:
            given(["http://user:hunter2@gpu:8000"], None)
        assert "hunter2" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None

    def test_one_twice(self):
        with pytest.raises(OptionInvalid, match="given twice"):
            given([URL, f"llama={URL}/"], None)

    def test_one_without_a_pool_where_there_are_several(self):
        with pytest.raises(
            OptionInvalid, match=r"several pools, default/llama, default/mini: .* --endpoint default/llama=http://127"
        ):
            given([URL], None).settled([MINI, LLAMA])

    def test_one_for_a_name_that_several_pools_have(self):
        with pytest.raises(OptionInvalid, match=r"several pools, default/llama, other/llama"):
            given([f"llama={URL}"], None).settled([LLAMA, OTHER, MINI])

    def test_one_for_a_pool_that_there_is_not(self):
        with pytest.raises(OptionInvalid, match=r"--endpoint lama=URL: there is no such pool, only default/llama$"):
            given([f"lama={URL}"], None).settled([LLAMA])
