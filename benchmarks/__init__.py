"""Benchmarks; each script prints one JSON line per figure."""

import os

# As `common.main.run` does for the scripts.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
