"""A simulated inference engine: a real HTTP server that speaks what vLLM 0.32 speaks, on one core without a GPU.

`python -m fairpool_lab.engine --port 0` runs one; its first line on stdout is `engine listening on URL`. Behind the
paths of vLLM stands a model of continuous batching (`batching`), so requests wait, share the batch, slow each other
down and are preempted as on a GPU, only `--speed` times faster. Every answer follows from the seed and the request
alone (`tokens`), so two runs differ in timing, ids and dates, never in what a choice says.

What is the engine's own, beside vLLM's paths:

- request header `x-engine-fault: KIND[:ARGUMENT]`: this request goes wrong in that way (`faults` lists the kinds);
- request header `x-engine-label`, or else the field `user` of the body: under whom its tokens are counted;
- `GET /debug/tokens`: `{label: {"requests": …, "prompt": …, "generation": …}}`, what the engine really computed,
  the tokens of requests that were cut off included;
- `POST /debug/faults` with `{"fault": "503", "times": 2, "everywhere": false}`: the next two requests for tokens go
  wrong; without `times` all do, until a `null` ends it; `everywhere` includes the probes (health, models, metrics).

Simplifications: no prefix cache (each choice reads its own prompt), no stop words, tools are counted but never
called, and any model gives embeddings.
"""
