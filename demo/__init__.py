"""The main job, shown: recorded agents, a killed server, compaction, forks and checks."""
