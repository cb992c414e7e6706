"""Names of the features of records, model inputs and signatures.

Every writer, parser, model input and signature uses these names. They are the
names of the original release. This module has no imports.
"""

INPUT_IDS = "input_ids"  # int [B, S] tokens
INPUT_MASK = "input_mask"  # int [B, S] 1 = token, 0 = padding
SEGMENT_IDS = "segment_ids"  # int [B, S] 0 = first segment, 1 = second
MASKED_LM_POSITIONS = "masked_lm_positions"  # int [B, P] masked positions
MASKED_LM_IDS = "masked_lm_ids"  # int [B, P] the original tokens
MASKED_LM_WEIGHTS = "masked_lm_weights"  # float [B, P] 1 = real, 0 = padding
NEXT_SENTENCE_LABELS = "next_sentence_labels"  # int [B, 1] 1 = random next
POSITION_IDS = "position_ids"  # int [B, S] position in its instance
SEQUENCE_IDS = "sequence_ids"  # int [B, S] instance of a row, 0 = padding
NEXT_SENTENCE_POSITIONS = "next_sentence_positions"  # int [B, K] of `[CLS]`
NEXT_SENTENCE_WEIGHTS = "next_sentence_weights"  # float [B, K] 1 = real
LABEL_IDS = "label_ids"  # int [B] class, int [B, C] 0 or 1, float [B] number
LABEL_WEIGHTS = "label_weights"  # float [B] text, [B, S] 1 = token has a label
CHOICE_WEIGHTS = "choice_weights"  # float [B, C] 1 = choice, 0 = padding
TEXT_NUMBERS = "text_numbers"  # int [B, T]; equal for equal token ids
START_POSITIONS = "start_positions"  # int [B] first token of the answer
END_POSITIONS = "end_positions"  # int [B] last token; 0, 0 = no answer
TOKEN_STARTS = "piece_starts"  # int [B, S] first character; 0 = no context
TOKEN_LIMITS = "piece_limits"  # int [B, S] end character; 0 = no context
TOKEN_IS_MAX_CONTEXT = "token_is_max_context"  # int [B, S] 1 = best window
TEACHER_OUTPUTS = "teacher_outputs"  # float [B, C] logits, [B, T * D] vectors
TEACHER_WEIGHTS = "teacher_weights"  # float [B] 1 = no label, only a teacher
IS_REAL_EXAMPLE = "is_real_example"  # int [B] 0 = fills up a batch

OF_TEACHER = (TEACHER_OUTPUTS, TEACHER_WEIGHTS)
ENCODER_INPUTS = (INPUT_IDS, INPUT_MASK, SEGMENT_IDS)
PACKED_INPUTS = (POSITION_IDS, SEQUENCE_IDS, NEXT_SENTENCE_POSITIONS)


def pretraining_schema(
    max_seq_length: int, max_predictions_per_seq: int
) -> dict[str, tuple[str, int]]:
    """Returns the features of a pre-training record, in order.

    Args:
        max_seq_length: int. S, tokens per sequence.
        max_predictions_per_seq: int. P, masked positions per sequence.

    Returns:
        dict. Name -> (kind, length); kind is "int64" or "float32".
    """
    return {
        INPUT_IDS: ("int64", max_seq_length),
        INPUT_MASK: ("int64", max_seq_length),
        SEGMENT_IDS: ("int64", max_seq_length),
        MASKED_LM_POSITIONS: ("int64", max_predictions_per_seq),
        MASKED_LM_IDS: ("int64", max_predictions_per_seq),
        MASKED_LM_WEIGHTS: ("float32", max_predictions_per_seq),
        NEXT_SENTENCE_LABELS: ("int64", 1),
    }


def packed_schema(
    max_seq_length: int,
    max_predictions_per_seq: int,
    max_sequences_per_row: int,
) -> dict[str, tuple[str, int]]:
    """Returns the features of a record of several packed instances.

    Args:
        max_seq_length: int. S, tokens per row.
        max_predictions_per_seq: int. P, masked positions per row.
        max_sequences_per_row: int. K, maximum number of instances per row.

    Returns:
        dict. Name -> (kind, length); kind is "int64" or "float32".
    """
    return {
        **pretraining_schema(max_seq_length, max_predictions_per_seq),
        POSITION_IDS: ("int64", max_seq_length),
        SEQUENCE_IDS: ("int64", max_seq_length),
        NEXT_SENTENCE_POSITIONS: ("int64", max_sequences_per_row),
        NEXT_SENTENCE_LABELS: ("int64", max_sequences_per_row),
        NEXT_SENTENCE_WEIGHTS: ("float32", max_sequences_per_row),
    }
