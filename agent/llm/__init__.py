"""The policy with a language model: any endpoint that speaks the OpenAI chat-completions API.

`client` asks (guarded by `guard`, counted by `ledger`); `context` says what a model is shown, `observe` and
`critique` what was measured, `answers` reads what it wrote. `rewrite` and `tools` are the two protocols;
`record` keeps a run for training and replay.
"""
