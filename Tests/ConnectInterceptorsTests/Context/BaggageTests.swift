import Connect
import ConnectInterceptors
import XCTest

final class BaggageTests: XCTestCase {
  func testValuesByName() {
    var baggage: Baggage = ["tenant": "acme", "plan": "free"]
    baggage["plan"] = "paid"
    baggage["region"] = "eu"
    baggage["tenant"] = nil
    XCTAssertEqual(baggage.entries.map(\.name), ["plan", "region"])
    XCTAssertEqual(baggage["plan"], "paid")
    XCTAssertNil(baggage["Plan"])
  }

  func testHeader() {
    let baggage: Baggage = ["tenant": "acme", "user": "Ada, \"née\" Byron; 100%", "no token": "x"]
    XCTAssertEqual(
      baggage.headerValue,
      "tenant=acme,user=Ada%2C%20%22n%C3%A9e%22%20Byron%3B%20100%25"
    )
    XCTAssertNil(Baggage().headerValue)
  }

  func testReadingWhatWasWritten() {
    let baggage: Baggage = ["tenant": "acme", "user": "Ada, \"née\" Byron; 100%+", "empty": ""]
    XCTAssertEqual(Baggage(["baggage": [baggage.headerValue ?? ""]]), baggage)
  }

  /// The example of the specification, and what is wrong in ways that others may get it wrong.
  func testReading() {
    let headers: Headers = [
      "baggage": [
        "key1=value1;property1;property2, key2 = value2, key3=value3; propertyKey=propertyValue", "a=%4",
      ]
    ]
    XCTAssertEqual(
      Baggage(headers).entries.map { "\($0.name)=\($0.value)" },
      ["key1=value1", "key2=value2", "key3=value3", "a=%4"]
    )
    for text in ["", ",", "=", "=x", "a", ";=", "a b=c", "%"] {
      XCTAssertTrue(Baggage(["baggage": [text]]).isEmpty, text)
    }
    XCTAssertEqual(Baggage(["baggage": ["a=%FF%+1%zz"]])["a"], "\u{fffd}%+1%zz")
  }

  func testBounds() {
    var baggage = Baggage()
    for number in 0..<100 { baggage["n\(number)"] = "v" }
    let header = baggage.headerValue ?? ""
    XCTAssertEqual(header.split(separator: ",").count, Baggage.maximumEntries)
    XCTAssertEqual(Baggage(["baggage": [header + ",more=1"]]).entries.count, Baggage.maximumEntries)

    var long = Baggage()
    for number in 0..<10 { long["n\(number)"] = String(repeating: "é", count: 200) }
    let longHeader = long.headerValue ?? ""
    XCTAssertEqual(longHeader.utf8.count, 6 * 1203 + 5)
    XCTAssertLessThanOrEqual(longHeader.utf8.count, Baggage.maximumHeaderBytes)
    XCTAssertEqual(Baggage(["baggage": [longHeader]]).entries.count, 6)
    let hostile = Array(repeating: "a=" + String(repeating: "x", count: 4000), count: 50)
    XCTAssertLessThanOrEqual(Baggage(["baggage": hostile]).entries.count, 1)
  }
}
