"""Subtitles: sentences over several lines and cues."""
