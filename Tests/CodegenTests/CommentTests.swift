import SwiftProtobuf
import XCTest

@testable import ConnectCodegen

/// Comments of a proto file as lines of Swift comments.
final class CommentTests: XCTestCase {
  private func comments(leading: String = "", detached: [String] = [], trailing: String = "") -> Comments {
    Comments(
      .with {
        $0.leadingComments = leading
        $0.leadingDetachedComments = detached
        $0.trailingComments = trailing
      }
    )
  }

  func testOneSpaceIsDroppedAndEmptyEndsAreToo() {
    XCTAssertEqual(self.comments(leading: "\n One.\n\n   Two. \n \n").documentation, ["One.", "", "  Two."])
    XCTAssertEqual(self.comments(leading: "Bare").documentation, ["Bare"])
    XCTAssertEqual(self.comments(leading: " \n\n").documentation, [])
  }

  func testTrailingCommentsFollowAsAParagraph() {
    XCTAssertEqual(self.comments(leading: " A\n", trailing: " B\n").documentation, ["A", "", "B"])
    XCTAssertEqual(self.comments(trailing: " B\n").documentation, ["B"])
  }

  func testDetachedCommentsStayApart() {
    let comments = self.comments(leading: " C\n", detached: [" A\n A\n", "\n", " B\n"])
    XCTAssertEqual(comments.detached, [["A", "A"], ["B"]])
    XCTAssertEqual(comments.documentation, ["C"])
  }

  func testNoCharacterEndsALine() {
    for end in ["\n", "\r\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
      XCTAssertEqual(
        self.comments(leading: " A\(end) B").documentation,
        ["A", "B"],
        "\(end.debugDescription)"
      )
    }
    XCTAssertEqual(self.comments(leading: " a\0b\u{7f}c\td").documentation, ["a b c d"])
  }

  func testSlashesStarsAndBackticksAreLeftAlone() {
    let text = "`*/ /* /// \"\\(x)\" ```"
    XCTAssertEqual(self.comments(leading: " \(text)\n").documentation, [text])
  }

  func testNoComments() {
    XCTAssertEqual(Comments(nil).documentation, [])
    XCTAssertEqual(Comments(nil).detached, [])
  }
}
