"""What people read: facts (`summary`), then figures (`plots`), a page (`html`) and the terminal (`terminal`)."""
