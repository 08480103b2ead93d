"""Pages for people: what was planned, run, recorded and found, as lines, trees and tables."""
