import Connect
import ConnectInterceptors
import ConnectTesting
import Foundation
import LoopbackServer
import NIOCore
import SwiftProtobuf
import TestSupport
import XCTest

/// No user gets a response that was made for another one, wherever the interceptor stands that says who the user is.
/// `CONNECT_USERS_SEED` repeats the arrangements of a run.
final class CacheUsersTests: XCTestCase {
  private static let environment = ProcessInfo.processInfo.environment
  private static let rounds = environment["CONNECT_PROPERTY_ROUNDS"].flatMap(Int.init) ?? 300

  func testRandomUsers() async throws {
    let seed = Self.environment["CONNECT_USERS_SEED"].flatMap { UInt64($0) }
    var generator = SeededGenerator(seed: seed ?? .random(in: 0...UInt64.max))
    var (callCount, hitCount) = (0, 0)
    for round in 0..<Self.rounds {
      let users = RandomUsers(using: &generator)
      let executor = VirtualExecutor()
      let client = users.client(Self.server(executor, users.answers), executor)
      for _ in 0..<6 {
        let results = try await Self.makeCalls(of: users, client, executor, using: &generator)
        for (user, response) in results {
          callCount += 1
          if CacheStatus(response.headers) != nil { hitCount += 1 }
          guard let value = response.message?.value, !users.allowed(for: user).contains(value) else {
            continue
          }
          XCTFail("round \(round): \(user ?? "nobody") got the response of \(value): \(users)")
          // What follows says nothing.
          return
        }
        executor.advance(by: .seconds(Int.random(in: 0...6, using: &generator)))
      }
    }
    XCTAssertGreaterThan(hitCount, callCount / 20, "next to nothing came from the cache")
  }

  /// Some calls one after the other or at the same time, and who has made them.
  private static func makeCalls(
    of users: RandomUsers,
    _ client: ProtocolClient,
    _ executor: VirtualExecutor,
    using generator: inout SeededGenerator
  ) async throws -> [(String?, ResponseMessage<LookupResponse>)] {
    let policies: [CachePolicy?] = [nil, nil, .cacheFirst, .networkFirst, .networkOnly, .cacheOnly]
    let callers = (0..<Int.random(in: 1...6, using: &generator)).map { _ in
      Int.random(in: 0..<4, using: &generator) == 0 ? nil : RandomUsers.names.randomElement(using: &generator)
    }
    let options = callers.map { users.options($0, policies.randomElement(using: &generator) ?? nil) }
    let request = LookupRequest.with { $0.key = "k" }
    switch Int.random(in: 0..<3, using: &generator) {
    case 0:
      let calls = LookupCalls()
      for options in options { calls.start(client, "k", options) }
      _ = try await executor.lettingTimePass { await calls.wait() }
      let outcomes = calls.outcomes
      return callers.enumerated().compactMap { index, user in outcomes[index].map { (user, $0) } }
    case 1:
      return try await executor.lettingTimePass {
        var results: [(String?, ResponseMessage<LookupResponse>)] = []
        for (user, options) in zip(callers, options) {
          for await response in client.cacheAndNetwork(TestMethods.lookup, request, options: options) {
            results.append((user, response))
          }
        }
        return results
      }
    default:
      return try await executor.lettingTimePass {
        var results: [(String?, ResponseMessage<LookupResponse>)] = []
        for (user, options) in zip(callers, options) {
          results.append((user, await client.unary(TestMethods.lookup, request, options: options)))
        }
        return results
      }
    }
  }

  /// A server that answers with the name of the user that it has seen on the wire.
  private static func server(_ executor: VirtualExecutor, _ answers: [RandomUsers.Answer])
    -> InMemoryTransport
  {
    let transport = InMemoryTransport(executor: executor)
    let count = Observed(0)
    transport.onRaw(TestMethods.lookup.path) { exchange in
      let number = count.update { count in
        count += 1
        return count
      }
      let value = RandomUsers.headers.compactMap { exchange.head.headers.first($0) }.first
      let user = value?.split(separator: " ").last.map(String.init) ?? "nobody"
      if number.isMultiple(of: 3) { try await exchange.sleep(for: .milliseconds(100)) }
      var headers: Headers = ["content-type": ["application/proto"], "etag": ["\"\(user)\""]]
      switch answers[number % answers.count] {
      case .good: break
      case .short: headers["cache-control"] = ["max-age=1"]
      case .isPrivate: headers["cache-control"] = ["private, max-age=60"]
      case .cookie: headers["set-cookie"] = ["session=\(user)"]
      case .noStore: headers["cache-control"] = ["no-store"]
      case .varying: headers["vary"] = ["x-lang"]
      case .failing:
        return try await exchange.respond(
          status: 503,
          headers: ["content-type": ["application/json"]],
          body: ByteBuffer(string: #"{"code":"unavailable"}"#)
        )
      }
      if exchange.head.headers["if-none-match"] == headers["etag"] {
        return try await exchange.respond(status: 304, headers: headers, body: ByteBuffer())
      }
      let bytes: [UInt8] = try LookupResponse.with { $0.value = user }.serializedBytes()
      try await exchange.respond(headers: headers, body: ByteBuffer(bytes: bytes))
    }
    return transport
  }
}
