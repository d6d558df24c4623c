"""The size of today's embeddings: 768 features, 100 classes, samples that leave and arrive in any order."""

import pytest
from tests.svm.embeddings import check_any_order, embeddings


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")  # few records arrive, of many classes
def test_forgetting_and_inserting_in_any_order_end_in_the_same_bytes():
    check_any_order(*embeddings(3000, 768, 100), few=30)
