"""A lookup table of a SavedModel, like that of published preprocessors."""

import pathlib

import tensorflow as tf


def text_file_table(path: pathlib.Path) -> tf.lookup.StaticHashTable:
    """Table from the lines of a text file to their numbers."""
    index = tf.lookup.TextFileIndex
    lines = tf.lookup.TextFileInitializer(
        str(path), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    return tf.lookup.StaticHashTable(lines, -1)
