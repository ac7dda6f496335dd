internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf

typealias EchoRequest = Connect_Test_V1_EchoRequest
typealias EchoResponse = Connect_Test_V1_EchoResponse
typealias CountRequest = Connect_Test_V1_CountRequest
typealias CountResponse = Connect_Test_V1_CountResponse
typealias SumRequest = Connect_Test_V1_SumRequest
typealias SumResponse = Connect_Test_V1_SumResponse
typealias ConverseRequest = Connect_Test_V1_ConverseRequest
typealias ConverseResponse = Connect_Test_V1_ConverseResponse
typealias Payload = Connect_Test_V1_Payload
typealias ErrorInfo = Connect_Test_V1_ErrorInfo
typealias Instruction = Connect_Test_V1_Instruction
typealias Failure = Connect_Test_V1_Failure
typealias Seen = Connect_Test_V1_Seen
typealias HeaderMessage = Connect_Test_V1_Header

extension Payload {
  /// A value in each kind of field that has a special JSON mapping.
  static let varied = Payload.with {
    $0.text = "größer als \"alles\" 🚀\n"
    $0.flag = true
    $0.small = -7
    $0.big = .min
    $0.huge = .max
    $0.signed = -1
    $0.fixed = .max
    $0.single = 1.5
    $0.ratio = -0.1
    $0.data = Data([0, 0xff, 0x80])
    $0.color = .green
    $0.maybe = 0
    $0.numbers = [1, 9_007_199_254_740_993]
    $0.words = ["", "a"]
    $0.palette = [.red, .blue]
    $0.counts = ["one": 1]
    $0.children = [-1: .with { $0.text = "child" }]
    $0.nested.nested.text = "deep"
    $0.name = "chosen"
    $0.time = .init(seconds: 1_700_000_000, nanos: 500_000_000)
    $0.span = .init(seconds: -3, nanos: -250_000_000)
  }
}

extension Seen {
  /// The values of a header, over all lines.
  func values(_ name: String) -> [String] {
    self.headers.filter { $0.name.lowercased() == name }.flatMap(\.values)
  }
}
