"""Pages for people: plans, runs, records and findings as lines, trees and tables."""
