"""The paper's figures and the tables that go beyond them, as rows of settings."""
