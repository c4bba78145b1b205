"""Converters between provider requests and the log's messages and header, which lose nothing."""

from foldlog.converters import anthropic, openai_chat, openai_responses, plain
from foldlog.converters.converted import Converted

__all__ = ["Converted", "anthropic", "openai_chat", "openai_responses", "plain"]
