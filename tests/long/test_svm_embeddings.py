"""The size of today's embeddings: 768 features, 100 classes, samples that leave and arrive in any order."""

from tests.svm.embeddings import check_any_order, embeddings


def test_forgetting_and_inserting_in_any_order_end_in_the_same_bytes():
    check_any_order(*embeddings(3000, 768, 100), few=30)
