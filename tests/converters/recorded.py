"""Requests as agents send them, one realistic conversation or more per provider."""

from __future__ import annotations

from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"

CHAT_CODING_AGENT: dict[str, Any] = {
    "model": "gpt-5.1",
    "messages": [
        {"role": "developer", "content": "You fix bugs. Run the tests before you answer."},
        {
            "role": "user",
            "name": "maria",
            "content": [
                {"type": "text", "text": "The chart is cut off, see the picture. Größe prüfen!"},
                {
                    "type": "image_url",
                    "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"},
                },
                {"type": "image_url", "image_url": {"url": "https://example.org/chart.png"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look at the renderer and at its tests.",
            "refusal": None,
            "annotations": [],
            "tool_calls": [
                {
                    "id": "call_a1",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": '{"path":"src/chart.py"}'},
                },
                {
                    "id": "call_a2",
                    "type": "function",
                    "function": {"name": "run_tests", "arguments": '{\n  "k": "chart"\n}'},
                },
                {
                    "id": "call_a3",
                    "type": "custom",
                    "custom": {"name": "apply_patch", "input": "*** Begin Patch\n*** End Patch"},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_a2", "content": "1 failed, 12 passed"},
        {
            "role": "tool",
            "tool_call_id": "call_a1",
            "content": [
                {
                    "type": "text",
                    "text": "def draw(): ...",
                    "cache_control": {"type": "ephemeral"},
                }
            ],
        },
        {"role": "tool", "content": "Done", "tool_call_id": "call_a3"},
        {"role": "assistant", "content": None, "refusal": "I can't help with that."},
        {"role": "user", "content": ""},
        {
            "role": "assistant",
            "reasoning_content": "The width is an integer division.",
            "content": "Fixed.",
            "audio": {"id": "audio_abc"},
        },
        {"role": "system", "content": "Summary of what came before: the width was wrong."},
        {"role": "user", "content": "Thanks"},
    ],
    "reasoning_effort": "low",
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "read_file",
                "parameters": {
                    "type": "object",
                    "properties": {"path": {"type": "string"}, "limit": {"maximum": 1e3}},
                    "required": ["path"],
                },
                "strict": True,
            },
        },
        {"type": "custom", "custom": {"name": "apply_patch", "format": {"type": "text"}}},
    ],
    "tool_choice": {"type": "function", "function": {"name": "read_file"}},
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "max_completion_tokens": 4096,
    "stop": ["END", "\n\n"],
    "metadata": {"run": "17", "who": "måria"},
    "stream": True,
    "stream_options": {"include_usage": True},
    "seed": 9007199254740993,
}

RESPONSES_RESEARCH_AGENT: dict[str, Any] = {
    "model": "gpt-5.1-codex",
    "instructions": "You research and cite.",
    "input": [
        {"role": "developer", "content": "Prefer primary sources."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Compare these two."},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                {"type": "input_image", "detail": "low", "image_url": "https://example.org/a.png"},
                {"type": "input_file", "file_id": "file-6F2ksmvXxt4VdoqmHRw6kL"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Two sources to read."}],
            "encrypted_content": "gAAAAABo...",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "I read both.",
                    "annotations": [],
                    "logprobs": [],
                }
            ],
            "phase": "commentary",
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_b1",
            "name": "fetch",
            "arguments": '{"url":"https://example.org/1"}',
            "status": "completed",
        },
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "call_b2",
            "name": "python",
            "input": "print(1)",
        },
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "x"},
        },
        {"type": "function_call_output", "call_id": "call_b1", "output": "page one"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_b2",
            "output": [
                {"type": "input_text", "text": "1"},
                {"type": "input_image", "image_url": "https://example.org/plot.png"},
            ],
        },
        {"type": "computer_call", "id": "cu_1", "call_id": "call_b3", "action": {"type": "wait"}},
        {
            "type": "computer_call_output",
            "call_id": "call_b3",
            "acknowledged_safety_checks": [],
            "output": {"type": "computer_screenshot", "image_url": "https://example.org/s.png"},
        },
        {"role": "assistant", "content": "First answer."},
        {"role": "assistant", "content": "Second answer."},
        {"type": "item_reference", "id": "msg_9"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"role": "user", "content": "Go on"},
    ],
    "reasoning": {"effort": "high", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
    "tools": [
        {"type": "function", "name": "fetch", "parameters": {"type": "object"}, "strict": None},
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "prompt_cache_key": "session-1",
    "max_output_tokens": None,
}

RESPONSES_ONE_TEXT: dict[str, Any] = {"input": "Tell me a story", "model": "gpt-5.1"}

ANTHROPIC_CODING_AGENT: dict[str, Any] = {
    "model": "claude-opus-4-5",
    "max_tokens": 32000,
    "system": [
        {"type": "text", "text": "You are a coding agent."},
        {
            "type": "text",
            "text": "The working directory is /srv.",
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        },
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Why does the build fail?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                },
                {"type": "image", "source": {"type": "url", "url": "https://example.org/b.png"}},
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "log"},
                    "title": "build.log",
                    "citations": {"enabled": True},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Two things to look at.", "signature": "EqoB=="},
                {"type": "redacted_thinking", "data": "EmwK=="},
                {"type": "text", "text": "I look at both.", "citations": None},
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "bash",
                    "input": {"command": "make", "timeout": 10.0, "ünï": [1, 1.0, None]},
                },
                {"type": "text", "text": "And at the lock file."},
                {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": "make: *** error 2",
                    "is_error": True,
                },
                {
                    "tool_use_id": "toolu_2",
                    "type": "tool_result",
                    "content": [
                        {"type": "text", "text": "uv.lock"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                        },
                    ],
                    "cache_control": {"type": "ephemeral"},
                },
                {"type": "text", "text": "The user is impatient."},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_1",
                    "name": "web_search",
                    "input": {"query": "make error 2"},
                },
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [{"type": "web_search_result", "url": "https://example.org"}],
                },
                {
                    "type": "text",
                    "text": "It is the linker.",
                    "citations": [{"type": "web_search_result_location", "cited_text": "ld"}],
                },
            ],
        },
        {"role": "user", "content": "Fix it"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Doing so."},
                {"type": "tool_use", "id": "toolu_3", "name": "bash", "input": {"command": "ld"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_3"}]},
        {"role": "assistant", "content": "Done."},
    ],
    "tools": [
        {
            "name": "bash",
            "input_schema": {"type": "object"},
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
    "thinking": {"type": "enabled", "budget_tokens": 16000},
    "output_config": {"effort": "medium"},
    "stop_sequences": ["</done>"],
    "metadata": {"user_id": "u-1"},
    "temperature": 1,
    "stream": True,
}

ANTHROPIC_SMALL: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 64,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "hi"}],
}
