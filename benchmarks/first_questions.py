"""The first questions of a SQuAD file, with their paragraphs.

    python -m benchmarks.first_questions TRAIN.json NUMBER > FIRST.json

TRAIN.json may be compressed with gzip.
"""

import json
import sys

from bert.common.formats import json_files


def first(dataset: dict, number: int) -> dict:
    """Returns a dataset without the questions after the first `number`.

    Args:
        dataset: the JSON of a SQuAD file.
        number: how many questions to keep.
    """
    articles = []
    for article in dataset["data"]:
        paragraphs = []
        for paragraph in article["paragraphs"]:
            questions = paragraph["qas"][:number]
            number -= len(questions)
            if questions:
                paragraphs.append({**paragraph, "qas": questions})
        if paragraphs:
            articles.append({**article, "paragraphs": paragraphs})
    return {**dataset, "data": articles}


if __name__ == "__main__":
    path, count = sys.argv[1:]
    read = json_files.decode(json_files.read_bytes(path, 1 << 30))
    json.dump(first(read, int(count)), sys.stdout)
