"""Loaded by a server as its sitecustomize: sessions are checkpointed after a few rows already."""

from foldlog.application import lanes

lanes.CHECKPOINT_ROWS = 20
