"""Certificates: one protocol, and its families, a file each."""

from unswayed.certificates.checking import certifiable
from unswayed.certificates.chosen import Chosen, best_of, chosen_on
from unswayed.certificates.hashed import HashedProofs
from unswayed.certificates.intercepted import Intercepted, certify_intercepted
from unswayed.certificates.levels import confidence_in_words, rounded_down, rounded_up
from unswayed.certificates.proofs import Proofs
from unswayed.certificates.protocol import About, Bar, Certified, Column, Explanation, Words
from unswayed.certificates.smoothed import Certificates, certify
from unswayed.certificates.top import TopCertificates, certify_top

__all__ = [
    "About",
    "Bar",
    "Certificates",
    "Certified",
    "Chosen",
    "Column",
    "Explanation",
    "HashedProofs",
    "Intercepted",
    "Proofs",
    "TopCertificates",
    "Words",
    "best_of",
    "certifiable",
    "certify",
    "certify_intercepted",
    "certify_top",
    "chosen_on",
    "confidence_in_words",
    "rounded_down",
    "rounded_up",
]
