"""The client library: one logic, a blocking and an asyncio driver."""
