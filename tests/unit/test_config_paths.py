"""Which paths reach endpoints, and that no configuration lets a tenant manage one."""

import pytest
from support.config import pool_config

from fairpool_gateway.config import PATHS
from fairpool_gateway.cost import Api


def why_not(path):
    with pytest.raises(ValueError, match="1 validation error") as refused:
        pool_config(extraPaths=[path])
    return str(refused.value)


class TestTheAllowList:
    def test_is_what_the_design_says(self):
        under_v1 = """chat/completions completions embeddings responses messages rerank score classify pooling
            audio/transcriptions audio/translations audio/speech images/generations tokenize detokenize"""
        at_the_root = "rerank score classify pooling tokenize detokenize v2/rerank"
        assert set(PATHS) == {f"/v1/{path}" for path in under_v1.split()} | {f"/{path}" for path in at_the_root.split()}

    def test_a_path_is_read_the_same_with_and_without_its_version(self):
        assert PATHS["/v1/rerank"] is PATHS["/v2/rerank"] is PATHS["/rerank"] is Api.RERANK

    def test_holds_no_path_that_a_pool_could_not_add(self):
        for path in PATHS:
            assert pool_config(extraPaths=[path]).apis() == PATHS


class TestWhatAPoolAdds:
    @pytest.mark.parametrize(
        "path",
        [
            "/v1/messages/count_tokens",
            "/v1/images/edits",
            "/generate",
            "/v1/models/llama:predict",
            "/inference/v1/generate",
            "/invocations",
            "/v2/embed",
            "/v1.5/~x_y",
        ],
    )
    def test_is_read_as_what_nothing_is_known_of(self, path):
        assert pool_config(extraPaths=[path]).apis() == {**PATHS, path: Api.EXTRA}

    @pytest.mark.parametrize(
        "path",
        [
            "",
            "/",
            "generate",
            "/v1/",
            "//generate",
            "/v1//generate",
            "/v1/../generate",
            "/v1/.hidden",
            "/v1/%6coad",
            "/generate?x=1",
            "/generate#x",
            "/a b",
            "/é",
            "/x\n",
            "/a" * 9,
            "/" + "a" * 200,
            "http://engine/generate",
        ],
    )
    def test_is_a_plain_path(self, path):
        assert "must be a path such as /v1/messages/count_tokens" in why_not(path)

    def test_is_not_what_the_gateway_answers_itself(self):
        assert "is answered by this gateway itself" in why_not("/v1/models")


class TestManagement:
    @pytest.mark.parametrize(
        "path",
        [
            "/v1/load_lora_adapter",
            "/v1/unload_lora_adapter",
            "/load_lora_adapter_from_tensors",
            "/V1/Load_LoRA_Adapter",
            "/v1/lora_adapter/load",
            "/lora-adapters",
            "/v1/responses/r1/cancel",
            "/sleep",
            "/wake_up",
            "/pause",
            "/resume",
            "/reset_prefix_cache",
            "/reset_mm_cache",
            "/collective_rpc",
            "/abort_requests",
            "/scale_elastic_ep",
            "/init_weight_transfer_engine",
            "/start_weight_update",
            "/update_weights",
            "/finish_weight_update",
            "/weight_checker",
            "/start_profile",
            "/stop_profile",
            "/server_info",
            "/flush_cache",
            "/release_memory_occupation",
            "/resume_memory_occupation",
            "/update_weights_from_disk",
            "/get_weights_by_name",
            "/destroy_weights_update_group",
            "/abort_request",
            "/pause_generation",
            "/continue_generation",
            "/open_session",
            "/close_session",
            "/set_internal_state",
            "/set_trace_level",
            "/configure_logging",
            "/freeze_gc",
            "/slow_down",
            "/clear_hicache_storage_backend",
            "/hicache/storage-backend",
            "/slots/0",
            "/props",
            "/models/load",
            "/models/unload",
            "/metrics",
            "/debug/faults",
            "/admin/api",
        ],
    )
    def test_of_an_engine_is_no_tenants_business(self, path):
        assert "manages an engine, for all tenants at once" in why_not(path)
