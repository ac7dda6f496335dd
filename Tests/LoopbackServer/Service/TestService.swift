internal import Foundation
internal import NIOCore
internal import SwiftProtobuf

/// Implements `connect.test.v1.TestService`.
enum TestService {
  static let prefix = "/connect.test.v1.TestService/"

  static let methods: [String: Method] = [
    "Echo": Method(kind: .unary) { try await Self.echo(ServerCall($0)) },
    "Count": Method(kind: .stream) { try await Self.count(ServerCall($0)) },
    "Sum": Method(kind: .stream) { try await Self.sum(ServerCall($0)) },
    "Converse": Method(kind: .stream) { try await Self.converse(ServerCall($0)) },
    "Lookup": Method(kind: .unary, isIdempotent: true) { try await Self.lookup(ServerCall($0)) },
    "Flood": Method(kind: .stream) { try await Self.flood(ServerCall($0)) },
    "Unimplemented": Method(kind: .unary) { _ in throw RPCFailure(.unimplemented, "never implemented") },
  ]

  private static func echo(
    _ call: ServerCall<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>
  ) async throws {
    let request = try await call.receiveOne()
    try await call.begin(request.instruction)
    try call.failIfInstructed(request.instruction)
    try await call.send(
      .with {
        if request.hasPayload { $0.payload = request.payload }
        $0.seen = call.seen
        $0.padding = request.instruction.padding
      }
    )
  }

  private static func count(
    _ call: ServerCall<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse>
  ) async throws {
    let request = try await call.receiveOne()
    try await call.begin(request.instruction)
    for index in 0..<request.instruction.messageCount {
      try call.failIfInstructed(request.instruction, sent: index)
      if index > 0 { try await call.sleep(milliseconds: request.instruction.messageDelayMs) }
      try await call.send(
        .with {
          $0.number = request.from &+ Int64(index)
          if index == 0 { $0.seen = call.seen }
          $0.padding = request.instruction.padding
        }
      )
    }
    try call.failIfInstructed(request.instruction)
  }

  private static func sum(
    _ call: ServerCall<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse>
  ) async throws {
    var instruction = Connect_Test_V1_Instruction()
    var sum: Int64 = 0
    while let request = try await call.receive() {
      if call.received == 1 { instruction = request.instruction }
      sum &+= request.number
      if instruction.finishAfter > 0, call.received >= instruction.finishAfter { break }
    }
    try await call.begin(instruction)
    try call.failIfInstructed(instruction)
    try await call.send(
      .with {
        $0.sum = sum
        $0.seen = call.seen
        $0.padding = instruction.padding
      }
    )
  }

  private static func converse(
    _ call: ServerCall<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse>
  ) async throws {
    guard let first = try await call.receive() else { return }
    let instruction = first.instruction
    var held: [Connect_Test_V1_ConverseRequest] = []
    var answered: UInt32 = 0

    func answer(_ request: Connect_Test_V1_ConverseRequest) async throws {
      for _ in 0..<max(1, instruction.messageCount) {
        try call.failIfInstructed(instruction, sent: answered)
        if answered > 0 { try await call.sleep(milliseconds: instruction.messageDelayMs) }
        try await call.send(
          .with {
            $0.index = answered
            if request.hasPayload { $0.payload = request.payload }
            $0.seen = call.seen
            $0.padding = instruction.padding
          }
        )
        answered += 1
      }
    }

    let isHalfDuplex = instruction.halfDuplex || call.version == .http1
    if !isHalfDuplex { try await call.begin(instruction) }
    var next: Connect_Test_V1_ConverseRequest? = first
    while let request = next {
      if isHalfDuplex {
        held.append(request)
      } else {
        try await answer(request)
      }
      if instruction.finishAfter > 0, call.received >= instruction.finishAfter { break }
      next = try await call.receive()
    }
    if isHalfDuplex { try await call.begin(instruction) }
    for request in held { try await answer(request) }
    try call.failIfInstructed(instruction)
  }

  private static func lookup(
    _ call: ServerCall<Connect_Test_V1_LookupRequest, Connect_Test_V1_LookupResponse>
  ) async throws {
    let request = try await call.receiveOne()
    try await call.begin(request.instruction)
    try call.failIfInstructed(request.instruction)
    try await call.send(
      .with {
        $0.value = "value of \(request.key)"
        $0.seen = call.seen
        $0.padding = request.instruction.padding
      }
    )
  }

  private static func flood(
    _ call: ServerCall<Connect_Test_V1_FloodRequest, Connect_Test_V1_FloodResponse>
  ) async throws {
    let request = try await call.receiveOne()
    let size = UInt64(request.messageBytes == 0 ? 65536 : request.messageBytes)
    let data = Data(repeating: 0x5a, count: Int(min(size, request.totalBytes)))
    var offset: UInt64 = 0
    while offset < request.totalBytes {
      let count = min(size, request.totalBytes - offset)
      try await call.send(
        .with {
          $0.offset = offset
          $0.data = data.prefix(Int(count))
        }
      )
      offset += count
    }
  }
}

extension Connect_Test_V1_Instruction {
  fileprivate var padding: Data { Data(count: Int(self.responseBytes)) }
}
